"""Atoms and symbolic sequences: one container for categories, logical sequences and binary matrices."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import KFold

from seqlab import HMM
from seqlab.data import Atom, InputError, Sequences, SymbolicSequences, parse_atoms
from seqlab.data.categories import read_categories
from seqlab.data.convert import as_sequences
from seqlab.data.symbolic import name_atoms
from seqlab.features import SequenceVectorizer

STEPS = [[["use(cup)", ("at", "sink")], []], [[Atom("use", "cup"), "near(cup, sink)"]]]


@settings(deadline=None, max_examples=60)
@given(st.lists(st.lists(st.text(max_size=4), min_size=1, max_size=3), min_size=1, max_size=3))
def test_parsing_inverts_printing(parts):
    atoms = [Atom(*one) for one in parts]
    parsed = parse_atoms(", ".join(atoms))
    assert parsed == ([] if atoms == ["true"] else atoms)
    assert [(a.predicate, a.arguments) for a in parsed] == [
        (a.predicate, a.arguments) for a in (atoms if parsed else [])
    ]


def test_an_atom_is_a_string_with_parts():
    atom = Atom.parse(" at( person ,'living room')")
    assert atom == "at(person, 'living room')"
    assert atom.signature == "at/2"
    copy = pickle.loads(pickle.dumps(atom))
    assert type(copy) is Atom
    assert copy.arguments == ("person", "living room")
    assert Atom("level", np.int64(3)) == "level(3)"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("use(cup", "no closing parenthesis"),
        ("use()", "a name is missing"),
        ("use(a,)", "a name is missing"),
        ("use(a))", r"unexpected '\)'"),
        ("'use", "a name is missing"),
        ("use(a) at(b)", "is not one atom, but 2"),
    ],
)
def test_text_that_is_not_an_atom(text, message):
    with pytest.raises(InputError, match=message):
        Atom.parse(text)
    with pytest.raises(InputError, match="whole numbers"):
        Atom("use", 0.5)


def test_steps_in_every_form_give_the_same_sequences():
    X = SymbolicSequences.from_steps(STEPS)
    assert X.table.atoms == ["use(cup)", "at(sink)", "near(cup, sink)"]
    assert X.table.signatures == ["use/1", "at/1", "near/2"]
    assert X.shape == (2, 3)
    assert list(X) == [[["use(cup)", "at(sink)"], []], [["use(cup)", "near(cup, sink)"]]]
    matrix = X.to_sequences()
    assert matrix.matrix.toarray().tolist() == [[1, 1, 0], [0, 0, 0], [1, 0, 1]]
    again = SymbolicSequences.from_sequences(matrix)
    assert list(again) == list(X)
    assert list(X[[1, 0]]) == [X[1], X[0]]
    dicts = SymbolicSequences.from_steps([[{"use": "cup", "raining": True, "no": None}]])
    assert list(dicts) == [[["use(cup)", "raining"]]]
    for bad, message in (([["use(cup"]], r"X\[0\]\[0\]"), ([[[0.5]]], "an atom is a string")):
        with pytest.raises(InputError, match=message):
            SymbolicSequences.from_steps(bad)
    with pytest.raises(InputError, match="numbers of atoms"):
        SymbolicSequences(X.table, [0, 1], [3], [0, 1])


def test_labelers_take_symbolic_sequences_and_scikit_learn_splits_them():
    X = SymbolicSequences.from_steps(STEPS)
    vectorizer = SequenceVectorizer()
    matrix, layout = as_sequences(X, vectorizer=vectorizer, fit_vectorizer=True)
    assert layout.symbolic
    assert layout.is_list
    np.testing.assert_array_equal(matrix.matrix.toarray(), X.to_sequences().matrix.toarray())
    train, test = next(KFold(2).split(X))
    assert list(X[train]) == [X[1]]
    assert list(X[test, ...]) == [X[0]]
    y = [["a", "b"], ["a"]]
    bernoulli = HMM(emissions="bernoulli")
    bags = [[[str(atom) for atom in step] for step in steps] for steps in X]
    assert np.array_equal(
        bernoulli.fit(X, y).predict_proba(X)[0], bernoulli.fit(bags, y).predict_proba(bags)[0]
    )


def test_categories_are_atoms():
    X = read_categories([[{"w": "to", "n": None}, {"w": "be"}], [{}, {"w": "to"}]])
    assert X.table.signatures == ["w/1", "n/1"]
    codes, values = X.categories("w")
    assert (codes.tolist(), values) == ([0, 1, -1, 0], ["to", "be"])
    assert X.categories("n").codes.tolist() == [-1] * 4
    twice = SymbolicSequences.from_steps([[[]], [["w(a)"], ["w(a)", "w(b)"]]])
    with pytest.raises(InputError, match=r"X\[1\]\[1\] has more than one atom w"):
        twice.categories("w")


def test_columns_of_a_matrix_are_atoms():
    X = Sequences(np.array([[0.0, 2.0], [1.0, 0.0]]), [0, 2])
    assert list(SymbolicSequences.from_sequences(X)) == [[["on(x1)"], ["on(x0)"]]]
    named = SymbolicSequences.from_sequences(X, ["door", "use(cup)"])
    assert list(named) == [[["use(cup)"], ["on(door)"]]]
    names = ["a", "a", "w=b", "w(b)", "f(x", "=="]
    atoms = name_atoms(names, len(names), predicate=None)
    assert len(set(atoms)) == len(names)
    assert atoms[2] == "w(b)"
