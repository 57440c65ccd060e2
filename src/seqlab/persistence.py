"""Models on disk: `save` and `load`, without pickle.

A model file is a skops file, that is a zip archive of plain arrays and a JSON description, with one
more member that says what it is. Reading is defensive and goes in this order, so that no object
is built from a file that is damaged, foreign or asks for more than data:

1. the archive: uncompressed members with unique names, the checksum of each, arrays as large as
   they say;
2. the member ``seqlab.json``: our format, in a version we know;
3. the types: only those of `TRUSTED_TYPES`, those skops trusts of scikit-learn, NumPy and SciPy,
   and those the caller names;
4. skops builds the model.

Writing makes the whole file in memory, reads it back as `load` will, and only then replaces the
target in one step.
"""

from __future__ import annotations

import errno
import io
import json
import math
import os
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any
from zipfile import ZIP_STORED, ZipFile

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

import seqlab
from seqlab.data.errors import SeqlabError
from seqlab.utils.files import open_atomic

# What a crafted file could use to crash the process: scikit-learn follows the node numbers in
# them without looking, so that trusting the type would be trusting the numbers
# (skops-dev/skops#535). A caller who knows where the file comes from may.
_TREE_TYPES = {
    "sklearn.tree._tree.Tree",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
}
_SPARSE_FORMS = ("matrix", "array")
TRUSTED_TYPES = (
    "seqlab.data.sequences.Sequences",
    "seqlab.data.vocabulary.Vocabulary",
    "seqlab.features.brackets.BracketFeatures",
    "seqlab.features.conjunctions.Conjunctions",
    "seqlab.features.gazetteer.Gazetteer",
    "seqlab.features.lines.LineFeatures",
    "seqlab.features.templates.Templates",
    "seqlab.features.templates.templates.Templates",
    "seqlab.features.union.SequenceUnion",
    "seqlab.features.vectorizer.SequenceVectorizer",
    "seqlab.features.vectorizer.vectorizer.SequenceVectorizer",
    "seqlab.features.window.Window",
    "seqlab.inference.phrases.constraints.CountLimit",
    "seqlab.inference.phrases.constraints.Covered",
    "seqlab.inference.phrases.constraints.LengthLimit",
    "seqlab.inference.phrases.constraints.Requires",
    "seqlab.inference.phrases.constraints.TypeOrder",
    "seqlab.inference.scores.Mask",
    "seqlab.meta.independent.IndependentLabeler",
    "seqlab.meta.stacked.StackedSequentialLearner",
    "seqlab.meta.tagger.Tagger",
    "seqlab.models._posteriors.StepPosteriors",
    "seqlab.models.classifiers.snow.SNoW",
    "seqlab.models.classifiers.tempered.TemperedClassifier",
    "seqlab.models.combinators._history.HistoryColumns",
    "seqlab.models.combinators._history.LocalModel",
    "seqlab.models.combinators._projections.Projections",
    "seqlab.models.combinators.classifier_hmm.ClassifierHMM",
    "seqlab.models.combinators.memm.MEMM",
    "seqlab.models.combinators.pmm.ProjectionMarkovModel",
    "seqlab.models.crf.LinearChainCRF",
    "seqlab.models.hmm._discrete_emissions.BernoulliEmissions",
    "seqlab.models.hmm._discrete_emissions.CategoricalEmissions",
    "seqlab.models.hmm._discrete_emissions.MultinomialEmissions",
    "seqlab.models.hmm._gaussian_emissions.FullGaussianEmissions",
    "seqlab.models.hmm._gaussian_emissions.GaussianEmissions",
    "seqlab.models.hmm._symbols.SymbolVectorizer",
    "seqlab.models.hmm.hmm.HMM",
    "seqlab.models.perceptron.StructuredPerceptron",
    "seqlab.models.phrases.phrase_inference.PhraseInference",
    "seqlab.structures.chain.ChainStructure",
    "seqlab.structures.pattern.FeaturePattern",
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    # Sparse matrices are read as arrays and their indices checked, whatever type they claim.
    *(f"scipy.sparse._{kind}.{kind}_{form}" for kind in ("csr", "csc") for form in _SPARSE_FORMS),
)
"""What a model file may hold beyond what skops trusts; a new estimator is added here."""

_MARKER = "seqlab.json"
_FORMAT = "seqlab-model"
_VERSION = 2  # 1 had the weights of labelers as compressed sparse matrices
# Sparse matrices are compressed inside the file, a thousandfold at best (all ones). What they
# claim to unpack to may be a gigabyte, or a hundred times the file if that is more.
_UNPACKED_BYTES = 2**30
_UNPACKED_RATIO = 100

PathLike = str | os.PathLike[str]
Trusted = Iterable[str | type]


class ModelFileError(SeqlabError, ValueError):
    """A file that is not a sound model file, or a model that no file could hold."""


def save(model: Any, path: PathLike, *, trusted: Trusted = ()) -> None:
    """Write a model to a file that `load` reads.

    The target is replaced in one step when all is written; if anything fails before, it stays as
    it was.

    Parameters
    ----------
    model : estimator or transformer
        Fitted or not.
    path : str or path-like
    trusted : iterable of str or type, default=()
        Types in the model beyond those of seqlab and scikit-learn (full names, or the types) that
        `load` will be told to trust too.

    Raises
    ------
    ModelFileError
        If the model is no estimator, or holds something `load` would refuse, such as a function of
        yours; the message says where. Nothing is written then.
    OSError
        If the file cannot be written: the folder is missing or read-only, the disk is full.

    See Also
    --------
    load : Read the file.

    Notes
    -----
    Fitted trees of scikit-learn (decision trees, random forests, gradient boosting) are not trusted
    unless named: they are tables of node numbers that scikit-learn follows without checking, and a
    crafted file could crash the process. To save and load such a model, pass
    ``trusted=["sklearn.tree._tree.Tree"]`` to both; histogram gradient boosting needs
    ``trusted=["sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor"]``. In `load`, do
    so only for files from a source you trust.

    Examples
    --------
    >>> import os, tempfile
    >>> from seqlab import SequenceVectorizer, load, save
    >>> vectorizer = SequenceVectorizer().fit([[["w=to"], ["w=be"]]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.seqlab")
    ...     save(vectorizer, path)
    ...     load(path).get_feature_names_out().tolist()
    ['w=to', 'w=be']
    """
    if isinstance(model, type):
        raise ModelFileError(f"{model.__name__} is a class: save an estimator, {model.__name__}()")
    if not hasattr(model, "get_params"):
        raise ModelFileError(
            f"only estimators and transformers can be saved (with get_params), got {model!r:.60}"
        )
    data = _to_bytes(model, _type_names(trusted))
    target = Path(os.path.realpath(path))
    if target.is_dir():  # else only the last step would fail, with an error that differs by system
        raise IsADirectoryError(errno.EISDIR, "cannot save to a folder", os.fspath(path))
    try:
        with open_atomic(target) as file:
            file.write(data)
    except OSError as error:  # it names our temporary file, of which the user knows nothing
        if error.errno is None:
            raise
        what = f"cannot save to {os.fspath(path)!r}: {error.strerror}"
        raise OSError(error.errno, what, str(target.parent)) from None


def load(path: PathLike, *, trusted: Trusted = ()) -> Any:
    """Read a model that `save` wrote.

    Nothing in the file is executed, and nothing is built before the whole file has been checked.

    Parameters
    ----------
    path : str or path-like
    trusted : iterable of str or type, default=()
        Types (full names, or the types) that the file may hold beyond those of seqlab and
        scikit-learn. Name only what you know: their code runs. Fitted trees of scikit-learn must
        be named, see `save`.

    Returns
    -------
    estimator
        With the same parameters and the same predictions as the one saved.

    Raises
    ------
    ModelFileError
        If the file is damaged, is no model file, was written by a newer seqlab, or holds types
        that are not trusted.
    FileNotFoundError
        If there is no such file.
    """
    data = Path(path).read_bytes()
    return _from_bytes(data, os.fspath(path), _type_names(trusted))


def _type_names(trusted: Trusted) -> list[str]:
    given = [trusted] if isinstance(trusted, str | type) else list(trusted)
    more = [t if isinstance(t, str) else f"{t.__module__}.{t.__qualname__}" for t in given]
    return [*TRUSTED_TYPES, *more]


def _to_bytes(model: Any, trusted: list[str]) -> bytes:
    """Content of the model file, known to be loadable."""
    from skops import io as skops_io  # a second of imports that only saving and loading need

    name = type(model).__name__
    for place, value in _walk(model, name):
        if isinstance(value, dict) and not _keys_survive(value):
            raise ModelFileError(
                f"{place} is a dict with keys that a model file cannot hold: use strings, or "
                "numbers of one type (not bool)"
            )
    try:
        content = skops_io.dumps(model, compression=ZIP_STORED)
        untrusted = set(skops_io.get_untrusted_types(data=content)) - set(trusted)
    except Exception as error:
        raise ModelFileError(f"this {name} cannot be saved: {error}") from error
    if untrusted:
        raise ModelFileError(_refusal(model, name, untrusted))
    buffer = io.BytesIO(content)
    with ZipFile(buffer, "a", compression=ZIP_STORED) as archive:
        about = {"format": _FORMAT, "version": _VERSION, "model": name}
        archive.writestr(_MARKER, json.dumps(about | {"seqlab": seqlab.__version__}))
    data = buffer.getvalue()
    try:
        _from_bytes(data, "the file it would make", trusted)
    except ModelFileError as error:
        raise ModelFileError(f"this {name} cannot be saved: {error}") from error
    return data


def _refusal(model: Any, name: str, untrusted: set[str]) -> str:
    """Say which parts of the model have types that `load` would refuse."""
    found: dict[str, str] = {}
    for place, value in _walk(model, name):
        for kind in (value, type(value)):
            full = f"{getattr(kind, '__module__', '')}.{getattr(kind, '__name__', '')}"
            if full in untrusted:
                found.setdefault(full, place)
    said = [
        f"{place} is {'' if full.endswith('>') else 'a '}{full}"
        for full, place in sorted(found.items())
    ]
    said += [f"{name} holds a {full}" for full in sorted(untrusted - set(found))]
    return (
        f"{', '.join(said)}, which load() would refuse{_why_no_trees(untrusted)}; pass "
        f"trusted={sorted(untrusted)} to save() and load() if you know that code"
    )


def _why_no_trees(untrusted: set[str]) -> str:
    if not untrusted & _TREE_TYPES:
        return ""
    return (
        " (trees of scikit-learn are not trusted by default, because a crafted file could crash the "
        "process when the model predicts; files of your own are safe)"
    )


def _walk(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    """Parts of a model with their names: attributes of estimators, items of containers."""
    yield place, value
    if isinstance(value, BaseEstimator):
        parts: Iterable[tuple[str, Any]] = [(f"{place}.{k}", v) for k, v in vars(value).items()]
    elif isinstance(value, dict):
        parts = [(f"{place}[{k!r}]", v) for k, v in value.items()]
    elif isinstance(value, list | tuple):
        parts = [(f"{place}[{k}]", v) for k, v in enumerate(value)]
    else:
        return
    for inner, part in parts:
        yield from _walk(part, inner)


def _keys_survive(value: dict[Any, Any]) -> bool:
    """Whether JSON text gives the keys back: ``bool("false")`` is True, ``1`` meets ``"1"``."""
    kinds = set(map(type, value))
    return len(kinds) <= 1 and not kinds & {bool, np.bool_, type(None)}


def _from_bytes(data: bytes, path: str, trusted: list[str]) -> Any:
    """Check the content of a model file, then build the model."""
    from skops import io as skops_io

    _check_magic(data, path)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        # Whatever a damaged file makes zipfile, json, NumPy, SciPy or skops raise, and they raise
        # nearly everything, means the same to the caller.
        try:
            with ZipFile(io.BytesIO(data)) as archive:
                _check_archive(archive, len(data))
                _check_marker(archive)
            untrusted = set(skops_io.get_untrusted_types(data=data)) - set(trusted)
            if untrusted:
                raise ModelFileError(
                    f"it holds types that are not trusted: {', '.join(sorted(untrusted))}"
                    f"{_why_no_trees(untrusted)}; pass trusted={sorted(untrusted)} if you know "
                    "where the file comes from"
                )
            model = skops_io.loads(data, trusted=trusted)
        except ModelFileError as error:
            raise ModelFileError(f"{path}: {error}") from error.__cause__
        except (Exception, MemoryError) as error:
            what = f"{type(error).__name__}: {error}"
            raise ModelFileError(f"{path}: the model file is damaged ({what})") from error
    for warning in caught:  # a different scikit-learn, for one: the caller's filters decide
        warnings.warn(warning.message, stacklevel=3)
    return model


def _check_magic(data: bytes, path: str) -> None:
    if not data:
        raise ModelFileError(f"{path}: the file is empty")
    if data[:1] == b"\x80":
        raise ModelFileError(f"{path}: this looks like a pickle, not a model file; it was not read")
    if data[:4] != b"PK\x03\x04":
        raise ModelFileError(f"{path}: this is not a model file written by seqlab")


def _check_archive(archive: ZipFile, size: int) -> None:
    """Reject what could be damaged or could unpack to more than the file itself."""
    members = archive.infolist()
    names = [member.filename for member in members]
    if len(set(names)) != len(names):
        raise ModelFileError("the archive has two members of one name")
    if any(member.compress_type != ZIP_STORED for member in members) or (
        sum(member.file_size for member in members) > size
    ):
        raise ModelFileError("the archive is not stored as seqlab stores it")
    limit = max(_UNPACKED_BYTES, _UNPACKED_RATIO * size)
    for name in names:
        content = archive.read(name)  # verifies the checksum
        if name.endswith(".npy"):
            _check_array(io.BytesIO(content), len(content), name)
        elif name.endswith(".npz"):
            limit -= _check_sparse(content, name, limit)


def _check_sparse(content: bytes, name: str, limit: int) -> int:
    """Reject a sparse matrix that is too large or points outside itself; return its bytes."""
    with ZipFile(io.BytesIO(content)) as archive:
        unpacked = sum(member.file_size for member in archive.infolist())
        if unpacked > limit:
            raise ModelFileError("its sparse matrices would unpack to far more than the file")
        for member in archive.infolist():
            with archive.open(member) as stream:
                _check_array(stream, member.file_size, name)
    matrix = sp.load_npz(io.BytesIO(content))
    if hasattr(matrix, "check_format"):
        matrix.check_format(full_check=True)
    return unpacked


def _check_array(stream: IO[bytes], size: int, name: str) -> None:
    """Reject an array whose header promises another size than its data have."""
    version = np.lib.format.read_magic(stream)
    read_header = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }.get(version)
    if read_header is None:
        raise ModelFileError(f"the array {name} has an unknown format {version}")
    shape, _, dtype = read_header(stream)
    promised = dtype.itemsize * math.prod(shape)
    if dtype.hasobject or min(shape, default=0) < 0 or promised != size - stream.tell():
        raise ModelFileError(f"the array {name} has another size than its header says")


def _check_marker(archive: ZipFile) -> None:
    try:
        about = json.loads(archive.read(_MARKER))
    except KeyError:
        raise ModelFileError("this is a zip archive, but not a model file of seqlab") from None
    if not isinstance(about, dict) or about.get("format") != _FORMAT:
        raise ModelFileError("this is not a model file of seqlab")
    version = about.get("version")
    if type(version) is not int or version < 1:
        raise ModelFileError(f"the format version {version!r} is unknown")
    if version > _VERSION:
        raise ModelFileError(
            f"it has format version {version} (seqlab {about.get('seqlab', 'unknown')}), newer "
            f"than version {_VERSION}, which this seqlab {seqlab.__version__} reads; update seqlab"
        )
