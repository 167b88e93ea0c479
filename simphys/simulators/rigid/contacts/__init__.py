"""Contacts: pairs of features, their distances and impacts, their rows and compliant forces."""
