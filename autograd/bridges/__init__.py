"""Bridges to other array libraries: PyTorch both ways, and memory shared through DLPack."""
