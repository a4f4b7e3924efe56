"""Statistics: numbers in, numbers out."""

from counterfoil.analyse.answers import Answers, Condition, unscored
from counterfoil.analyse.backgrounds import background_gap, survive_all
from counterfoil.analyse.breaking import (
    BrokenClass,
    BrokenPhoto,
    PositionMap,
    position_map,
    worst_classes,
    worst_photos,
)
from counterfoil.analyse.cells import cells, model_variance_score
from counterfoil.analyse.confusion import Confusion, LenderConfusion, confusions, lender_confusion
from counterfoil.analyse.consistency import Consistency, error_consistency
from counterfoil.analyse.contrast import Contrast, compare_accuracies, compare_drops
from counterfoil.analyse.corruption_error import corruption_error
from counterfoil.analyse.details import Details, photo_labels
from counterfoil.analyse.dose import DosePoint, dose_curve
from counterfoil.analyse.drops import FEWEST_PHOTOS, drops, significant
from counterfoil.analyse.fall import Fall, size_falls
from counterfoil.analyse.flips import flipped
from counterfoil.analyse.folds import FoldAccuracy, fold_accuracy, stratified_folds
from counterfoil.analyse.interval import INTERVAL_NAME, Estimate, estimate
from counterfoil.analyse.margins import MarginChange, margin_changes
from counterfoil.analyse.mean_drop import mean_drops
from counterfoil.analyse.multiplicity import holm
from counterfoil.analyse.power import Change, change_from_accuracy, change_from_discordance, detectable, photos_needed
from counterfoil.analyse.prediction_tables import answers_from_tables, details_from_tables
from counterfoil.analyse.ties import tied_models
from counterfoil.analyse.variance_score import DEFINITIONS, variance_score

__all__ = [
    "DEFINITIONS", "FEWEST_PHOTOS", "INTERVAL_NAME", "Answers", "BrokenClass", "BrokenPhoto", "Change",
    "Condition", "Confusion", "Consistency", "Contrast", "Details", "DosePoint", "Estimate", "Fall", "FoldAccuracy",
    "LenderConfusion", "MarginChange", "PositionMap", "answers_from_tables", "background_gap", "cells",
    "change_from_accuracy", "change_from_discordance", "compare_accuracies", "compare_drops", "confusions",
    "corruption_error", "details_from_tables", "detectable", "dose_curve", "drops", "error_consistency", "estimate",
    "flipped", "fold_accuracy", "holm", "lender_confusion", "margin_changes", "mean_drops", "model_variance_score",
    "photo_labels", "photos_needed", "position_map", "significant", "size_falls", "stratified_folds", "survive_all",
    "tied_models", "unscored", "variance_score", "worst_classes", "worst_photos",
]  # fmt: skip
