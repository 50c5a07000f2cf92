"""Predictions of recovery (chaos/predict/)."""
