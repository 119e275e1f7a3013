"""Tests of the real hook files: an emulated step daemon starts them, fakes stand in for all programs."""
