"""Masks looked at, corrected and decided on by a person, in a page on this machine."""
