"""Statistics: numbers in, numbers out."""

from counterfoil.analyse.answers import Answer, Answers, Condition, collect, unscored
from counterfoil.analyse.backgrounds import background_gap, survive_all
from counterfoil.analyse.breaking import (
    BrokenClass,
    BrokenPhoto,
    PositionMap,
    position_map,
    worst_classes,
    worst_photos,
)
from counterfoil.analyse.calibration import CalibrationChange, calibration_changes, expected_calibration_error
from counterfoil.analyse.cells import Cells, accuracy_regression, cells, model_variance_score, picture_regression
from counterfoil.analyse.confusion import (
    Confusion,
    LenderConfusion,
    background_confusion,
    confusions,
    lender_confusion,
    texture_confusion,
)
from counterfoil.analyse.consistency import Consistency, error_consistency
from counterfoil.analyse.contrast import Contrast, compare_accuracies, compare_drops
from counterfoil.analyse.corruption_error import CorruptionError, alexnet_errors, corruption_error
from counterfoil.analyse.details import Details, photo_labels
from counterfoil.analyse.dose import DosePoint, dose_curve
from counterfoil.analyse.drops import FEWEST_PHOTOS, drops, significant
from counterfoil.analyse.effective_robustness import Baseline, effective_robustness, fit_baseline
from counterfoil.analyse.error_ratio import error_ratio
from counterfoil.analyse.fall import Fall, edit_falls, size_falls
from counterfoil.analyse.flips import Flipped, FlipRate, flip_rates, flipped
from counterfoil.analyse.folds import FoldAccuracy, fold_accuracy, stratified_folds
from counterfoil.analyse.interval import (
    DEFAULT_METHOD,
    METHODS,
    Bounds,
    Estimate,
    IntervalMethod,
    bca_interval,
    estimate,
    paired_interval,
    score_interval,
    score_test,
)
from counterfoil.analyse.margins import MarginChange, margin_changes
from counterfoil.analyse.mean_drop import MeanDrop, mean_drops
from counterfoil.analyse.multiplicity import benjamini_hochberg, holm
from counterfoil.analyse.paired import Interval, bootstrap_interval, mcnemar
from counterfoil.analyse.power import (
    Change,
    Detectable,
    change_from_accuracy,
    change_from_discordance,
    detectable,
    minimum_detectable_drop,
    photos_needed,
    power_of,
)
from counterfoil.analyse.prediction_tables import answers_from_tables, details_from_tables
from counterfoil.analyse.regression import Coefficient, Factor, Regression, regress_accuracy, regress_pictures
from counterfoil.analyse.shape import shape_bias
from counterfoil.analyse.ties import Ranked, compact_letters, tied, tied_attributes, tied_models
from counterfoil.analyse.variance_score import (
    DEFINITIONS,
    Normality,
    ScoreDefinition,
    VarianceScore,
    class_accuracies,
    normality,
    variance_score,
    variance_score_interval,
)

__all__ = [
    "DEFAULT_METHOD",
    "DEFINITIONS",
    "FEWEST_PHOTOS",
    "METHODS",
    "Answer",
    "Answers",
    "Baseline",
    "Bounds",
    "BrokenClass",
    "BrokenPhoto",
    "CalibrationChange",
    "Cells",
    "Change",
    "Coefficient",
    "Condition",
    "Confusion",
    "Consistency",
    "Contrast",
    "CorruptionError",
    "Details",
    "Detectable",
    "DosePoint",
    "Estimate",
    "Factor",
    "Fall",
    "FlipRate",
    "Flipped",
    "FoldAccuracy",
    "Interval",
    "IntervalMethod",
    "LenderConfusion",
    "MarginChange",
    "MeanDrop",
    "Normality",
    "PositionMap",
    "Ranked",
    "Regression",
    "ScoreDefinition",
    "VarianceScore",
    "accuracy_regression",
    "alexnet_errors",
    "answers_from_tables",
    "background_confusion",
    "background_gap",
    "bca_interval",
    "benjamini_hochberg",
    "bootstrap_interval",
    "calibration_changes",
    "cells",
    "change_from_accuracy",
    "change_from_discordance",
    "class_accuracies",
    "collect",
    "compact_letters",
    "compare_accuracies",
    "compare_drops",
    "confusions",
    "corruption_error",
    "details_from_tables",
    "detectable",
    "dose_curve",
    "drops",
    "edit_falls",
    "effective_robustness",
    "error_consistency",
    "error_ratio",
    "estimate",
    "expected_calibration_error",
    "fit_baseline",
    "flip_rates",
    "flipped",
    "fold_accuracy",
    "holm",
    "lender_confusion",
    "margin_changes",
    "mcnemar",
    "mean_drops",
    "minimum_detectable_drop",
    "model_variance_score",
    "normality",
    "paired_interval",
    "photo_labels",
    "photos_needed",
    "picture_regression",
    "position_map",
    "power_of",
    "regress_accuracy",
    "regress_pictures",
    "score_interval",
    "score_test",
    "shape_bias",
    "significant",
    "size_falls",
    "stratified_folds",
    "survive_all",
    "texture_confusion",
    "tied",
    "tied_attributes",
    "tied_models",
    "unscored",
    "variance_score",
    "variance_score_interval",
    "worst_classes",
    "worst_photos",
]
