"""Predictions of recovery (operations/predict/)."""
