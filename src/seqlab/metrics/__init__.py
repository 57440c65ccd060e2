"""Evaluation: token, sequence, span and run scores, reports, scorers and significance tests."""

from seqlab.metrics.report import Report, span_report, token_report
from seqlab.metrics.runs import (
    LabelRuns,
    Run,
    RunReport,
    border_f1,
    label_runs,
    run_f1,
    run_report,
)
from seqlab.metrics.scorers import (
    macro_recall_scorer,
    sequence_accuracy_scorer,
    span_f1_scorer,
    token_accuracy_scorer,
)
from seqlab.metrics.significance import (
    Interval,
    McNemarTest,
    PairedBootstrap,
    SignTest,
    bootstrap_interval,
    mcnemar_test,
    paired_bootstrap,
    sign_test,
)
from seqlab.metrics.spans import (
    SpanScores,
    span_f1,
    span_precision,
    span_precision_recall_f1,
    span_recall,
)
from seqlab.metrics.threshold import MinError, min_error_threshold
from seqlab.metrics.token import (
    Confusion,
    confusion,
    macro_recall,
    sequence_accuracy,
    token_accuracy,
)

__all__ = [
    "Confusion",
    "Interval",
    "LabelRuns",
    "McNemarTest",
    "MinError",
    "PairedBootstrap",
    "Report",
    "Run",
    "RunReport",
    "SignTest",
    "SpanScores",
    "bootstrap_interval",
    "border_f1",
    "confusion",
    "label_runs",
    "macro_recall",
    "macro_recall_scorer",
    "mcnemar_test",
    "min_error_threshold",
    "paired_bootstrap",
    "run_f1",
    "run_report",
    "sequence_accuracy",
    "sequence_accuracy_scorer",
    "sign_test",
    "span_f1",
    "span_f1_scorer",
    "span_precision",
    "span_precision_recall_f1",
    "span_recall",
    "span_report",
    "token_accuracy",
    "token_accuracy_scorer",
    "token_report",
]
