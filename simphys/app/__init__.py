"""The application: command line, workflows and printed reports."""
