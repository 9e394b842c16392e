"""Configurations that stand in Python source, read without running it.

Assignments of literals are followed through classes, their bases, `__post_init__`, calls and imports of files beside
them. What is computed otherwise, or under a condition that the source does not decide, is not seen.
"""

from __future__ import annotations

import ast
import io
import operator
import tokenize
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from cycletime.bounded import read_bounded_text
from cycletime.errors import InputError

MOST_BYTES = 2**21
_MOST_CALLS = 40
"""How deep classes and functions are followed into each other."""
_MOST_STEPS = 200_000
"""Statements and expressions of one configuration: classes can be written that unfold without end."""
_MOST_IMPORTS = 300
"""Modules that a name is looked for in."""
_LARGEST = 1e18


@dataclass(frozen=True)
class Leaf:
    """A value and where it stands; an `Opaque` value is an expression that was not followed."""

    value: object
    file: Path
    line: int
    comment: str = ""


@dataclass(frozen=True)
class Opaque:
    text: str


@dataclass
class Tree:
    """Settings by name, as a class, a call or a dictionary has them."""

    children: dict[str, Tree | Leaf] = field(default_factory=dict)

    def copy(self) -> Tree:
        return Tree({name: each.copy() if isinstance(each, Tree) else each for name, each in self.children.items()})

    def leaves(self, prefix: str = "") -> Iterator[tuple[str, Leaf]]:
        for name, each in self.children.items():
            if isinstance(each, Tree):
                yield from each.leaves(f"{prefix}{name}.")
            else:
                yield prefix + name, each


class _Import(NamedTuple):
    """What one name is imported from."""

    module: str
    level: int = 0
    """The dots before it."""
    name: str = ""
    """The name there; empty if it is the module itself."""


@dataclass
class _Module:
    path: Path
    text: str
    body: list[ast.stmt]
    comments: Mapping[int, str]
    names: dict[str, ast.stmt | _Import]
    stars: list[_Import]


@dataclass
class _Definition:
    """A class or function, and the module that its names are looked up in."""

    node: ast.ClassDef | ast.FunctionDef | ast.Lambda
    module: _Module


_Found = Leaf | Tree | _Definition
_Scope = dict[str, _Found]


class SourceReader:
    """Reads classes and functions of files, and of those that they import from beside them."""

    def __init__(self) -> None:
        self._modules: dict[Path, _Module | None] = {}
        self._origins: dict[tuple[Path, str], tuple[ast.stmt, _Module] | None] = {}
        self._depth = 0
        self._steps = 0
        self.unresolved: set[str] = set()
        """Base classes that are in no file within reach: what they set is not seen."""
        self.refused: dict[Path, str] = {}
        """By file, why it cannot be read as Python."""

    def module(self, path: Path) -> _Module | None:
        path = path.resolve()
        if path not in self._modules:
            try:
                self._modules[path] = _parse(path)
            except (InputError, SyntaxError, ValueError, RecursionError, MemoryError, tokenize.TokenError) as error:
                self._modules[path] = None
                why = str(error).removeprefix(f"{path} ")
                self.refused[path] = why if isinstance(error, InputError) else f"not valid Python: {why}"
        return self._modules[path]

    def find(self, path: Path, node: ast.expr) -> _Definition | None:
        module = self.module(path)
        return self._reference(node, module) if module else None

    def build(self, path: Path, name: str, arguments: Mapping[str, object] | None = None) -> Tree | None:
        """What a class holds or a function returns, if the file has one of this name and it holds settings."""
        module = self.module(path)
        found = module and self._lookup(module, name)
        self._depth = self._steps = 0
        if not isinstance(found, _Definition):
            return found if isinstance(found, Tree) else None
        given = {key: Leaf(value, path, 0) for key, value in (arguments or {}).items()}
        try:
            made = self._make(found, dict(given))
        except RecursionError:
            return None
        return made if isinstance(made, Tree) else None

    def mro(self, definition: _Definition) -> list[_Definition]:
        assert isinstance(definition.node, ast.ClassDef), "functions have no bases"
        order = [definition]
        for base in definition.node.bases:
            found = self._reference(base, definition.module)
            if found is None:
                self.unresolved.add(ast.unparse(base))
            elif found.node is not definition.node and len(order) < _MOST_CALLS:
                order += [each for each in self.mro(found) if all(each.node is not one.node for one in order)]
        return order

    def _reference(self, node: ast.expr, module: _Module) -> _Definition | None:
        if isinstance(node, ast.Name):
            found = self._lookup(module, node.id)
            return found if isinstance(found, _Definition) else None
        if not isinstance(node, ast.Attribute):
            return None
        owner = self._reference(node.value, module)
        for each in self.mro(owner) if owner and isinstance(owner.node, ast.ClassDef) else ():
            for one in each.node.body:  # type: ignore[union-attr]  # a class has statements
                if isinstance(one, ast.ClassDef) and one.name == node.attr:
                    return _Definition(one, each.module)
        for path in self._module_paths(node.value, module):
            other = self.module(path)
            found = self._lookup(other, node.attr) if other else None
            if isinstance(found, _Definition):
                return found
        return None

    def _module_paths(self, node: ast.expr, module: _Module) -> list[Path]:
        """Files of the module that a name, or a name in a package, means."""
        if isinstance(node, ast.Attribute):
            inside = self._module_paths(node.value, module)
            packages = [path.parent if path.stem == "__init__" else path for path in inside]
            found = [path for each in packages if each.is_dir() for path in _files_of(each / node.attr)]
            exporters = [self.module(path) for path in inside if path.stem == "__init__"]
            name = ast.Name(node.attr)
            return found or [path for each in exporters if each for path in self._module_paths(name, each)]
        imported = module.names.get(node.id) if isinstance(node, ast.Name) else None
        return _module_files(module.path.parent, imported, imported.name) if isinstance(imported, _Import) else []

    def dotted_name(self, path: Path, name: str) -> str:
        """The module that a name was imported as, as an import would write it; a relative one begins with a dot."""
        module = self.module(path)
        imported = module.names.get(name) if module else None
        if not isinstance(imported, _Import):
            return f".{name}"
        return "." * min(imported.level, 1) + ".".join(filter(None, [imported.module, imported.name]))

    def _lookup(self, module: _Module, name: str) -> _Found | None:
        key = (module.path, name)
        if key not in self._origins:
            self._origins[key] = self._origin(module, name, set())
        node, origin = self._origins[key] or (None, module)
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            return _Definition(node, origin)
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            return self._evaluate(node.value, {}, origin)
        return None

    def _origin(self, module: _Module, name: str, seen: set[tuple[Path, str]]) -> tuple[ast.stmt, _Module] | None:
        """Where a name is defined, through imports; modules may import all of each other in circles."""
        if (module.path, name) in seen or len(seen) >= _MOST_IMPORTS:
            return None
        seen.add((module.path, name))
        node = module.names.get(name)
        if isinstance(node, ast.stmt):
            return node, module
        for each in [node] if node else [one._replace(name=name) for one in module.stars]:
            for path in _module_files(module.path.parent, each) if each.name else ():
                other = self.module(path)
                if other and (found := self._origin(other, each.name, seen)):
                    return found
        return None

    def _make(self, definition: _Definition, given: _Scope) -> _Found | None:
        """An instance of a class, or what a function returns."""
        if self._depth >= _MOST_CALLS:
            return None
        self._depth += 1
        try:
            if isinstance(definition.node, ast.ClassDef):
                return self._instance(definition, given)
            if isinstance(definition.node, ast.Lambda):
                return self._evaluate(definition.node.body, given, definition.module)
            scope = self._defaults(definition) | given
            return self._run(definition.node.body, scope, definition.module, [])
        finally:
            self._depth -= 1

    def _defaults(self, function: _Definition) -> _Scope:
        assert isinstance(function.node, ast.FunctionDef), "classes have fields"
        spec = function.node.args
        positional = spec.posonlyargs + spec.args
        pairs = [*zip(positional[len(positional) - len(spec.defaults) :], spec.defaults, strict=True)]
        pairs += [(name, each) for name, each in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if each]
        return {name.arg: self._evaluate(each, {}, function.module) for name, each in pairs}

    def _instance(self, definition: _Definition, given: _Scope) -> Tree:
        order, tree = self.mro(definition), Tree()
        for each in reversed(order):
            assert isinstance(each.node, ast.ClassDef), "bases are classes"
            self._run(each.node.body, tree.children, each.module, [])  # type: ignore[arg-type]  # definitions are taken out below
            for name in [name for name, value in tree.children.items() if isinstance(value, _Definition)]:
                nested = self._make(tree.children.pop(name), {})  # type: ignore[arg-type]
                if isinstance(nested, Tree) and name.islower():  # others are kinds of what the fields hold
                    tree.children[name] = nested
        tree.children.update({name: value for name, value in given.items() if not isinstance(value, _Definition)})
        methods = [
            _Definition(one, each.module)
            for each in order
            for one in each.node.body  # type: ignore[union-attr]
            if isinstance(one, ast.FunctionDef) and one.name == "__post_init__"
        ]
        if methods:
            self._run(methods[0].node.body, {"self": tree}, methods[0].module, methods[1:])  # type: ignore[arg-type]
        return tree

    def _run(
        self, body: Sequence[ast.stmt], scope: _Scope, module: _Module, overridden: Sequence[_Definition]
    ) -> _Found | None:
        """Follow assignments; what is returned, if anything is."""
        for each in body:
            self._steps += 1
            if self._steps > _MOST_STEPS:
                return None
            if isinstance(each, ast.ClassDef):
                scope[each.name] = _Definition(each, module)
            elif isinstance(each, ast.Assign | ast.AnnAssign | ast.AugAssign):
                self._run_assignment(each, scope, module)
            elif overridden and isinstance(each, ast.Expr) and ast.unparse(each.value) == "super().__post_init__()":
                self._run(overridden[0].node.body, scope, overridden[0].module, overridden[1:])  # type: ignore[arg-type]
            elif isinstance(each, ast.If):
                chosen = {True: each.body, False: each.orelse, None: []}[self._decide(each.test, scope, module)]
                if (returned := self._run(chosen, scope, module, overridden)) is not None:
                    return returned
            elif isinstance(each, ast.Return) and each.value is not None:
                return self._evaluate(each.value, scope, module)
        return None

    def _run_assignment(self, each: ast.Assign | ast.AnnAssign | ast.AugAssign, scope: _Scope, module: _Module) -> None:
        value = each.value
        if isinstance(each, ast.AugAssign):
            value = ast.copy_location(ast.BinOp(each.target, each.op, each.value), each)
        for target in each.targets if isinstance(each, ast.Assign) else [each.target]:
            if value is not None:
                _assign(target, self._evaluate(value, scope, module, each.lineno), scope)

    def _decide(self, test: ast.expr, scope: _Scope, module: _Module) -> bool | None:
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            inner = self._decide(test.operand, scope, module)
            return None if inner is None else not inner
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            left = self._evaluate(test.left, scope, module)
            right = self._evaluate(test.comparators[0], scope, module)
            if any(isinstance(each, Leaf) and isinstance(each.value, Opaque) for each in (left, right)):
                return None
            if isinstance(test.ops[0], ast.Is | ast.IsNot) and isinstance(right, Leaf) and right.value is None:
                absent = isinstance(left, Leaf) and left.value is None
                return None if isinstance(left, _Definition) else absent == isinstance(test.ops[0], ast.Is)
            compare = _COMPARISONS.get(type(test.ops[0]))
            if compare and isinstance(left, Leaf) and isinstance(right, Leaf):
                with suppress(TypeError):
                    return bool(compare(left.value, right.value))
            return None
        found = self._evaluate(test, scope, module)
        return found.value if isinstance(found, Leaf) and isinstance(found.value, bool) else None

    def _evaluate(self, node: ast.expr, scope: _Scope, module: _Module, line: int = 0) -> _Found:
        """The value of an expression, with the comment on its last line or on that of its statement."""
        self._steps += 1
        follow = _FOLLOWED.get(type(node)) if self._steps < _MOST_STEPS else None
        found = follow(self, node, scope, module) if follow else None
        if isinstance(found, Tree | _Definition):
            return found
        comment = module.comments.get(node.end_lineno or 0) or module.comments.get(line, "")
        if found is None or isinstance(found.value, Opaque):
            return Leaf(Opaque(ast.unparse(node)), module.path, node.lineno, comment)
        return Leaf(found.value, module.path, node.lineno, comment)

    def _number(self, node: ast.UnaryOp | ast.BinOp, scope: _Scope, module: _Module) -> _Found | None:
        parts = [node.operand] if isinstance(node, ast.UnaryOp) else [node.left, node.right]
        numbers = [self._evaluate(part, scope, module) for part in parts]
        operation = _OPERATIONS.get(type(node.op))
        value = operation and _calculate(operation, *numbers)
        return None if value is None else Leaf(value, module.path, node.lineno)

    def _name(self, node: ast.Name, scope: _Scope, module: _Module) -> _Found | None:
        found = scope.get(node.id) or self._lookup(module, node.id)
        return found.copy() if isinstance(found, Tree) and node.id not in scope else found

    def _dictionary(self, node: ast.Dict, scope: _Scope, module: _Module) -> _Found | None:
        pairs = [
            (key.value, self._evaluate(each, scope, module))
            for key, each in zip(node.keys, node.values, strict=True)
            if isinstance(key, ast.Constant)
        ]
        return _tree({str(key): each for key, each in pairs}) if len(pairs) == len(node.keys) else None

    def _sequence(self, node: ast.List | ast.Tuple, scope: _Scope, module: _Module) -> _Found | None:
        parts = [self._evaluate(each, scope, module) for each in node.elts]
        if any(isinstance(each, Tree) for each in parts):
            return _tree({str(at): each for at, each in enumerate(parts)})
        values = [each.value for each in parts if isinstance(each, Leaf) and not isinstance(each.value, Opaque)]
        return Leaf(values, module.path, node.lineno) if len(values) == len(parts) else None

    def _attribute(self, node: ast.Attribute, scope: _Scope, module: _Module) -> _Found | None:
        if (found := self._reference(node, module)) is not None:
            return found
        owner: _Found | None = self._evaluate(node.value, scope, module)
        if isinstance(owner, _Definition) and isinstance(owner.node, ast.ClassDef):
            owner = self._make(owner, {})
        return owner.children.get(node.attr) if isinstance(owner, Tree) else None

    def _call(self, node: ast.Call, scope: _Scope, module: _Module) -> _Found | None:
        words = {each.arg: each.value for each in node.keywords if each.arg}
        given: _Scope = {name: self._evaluate(each, scope, module, each.lineno) for name, each in words.items()}
        callee = node.func
        name = callee.id if isinstance(callee, ast.Name) else callee.attr if isinstance(callee, ast.Attribute) else ""
        local = scope.get(name) if isinstance(callee, ast.Name) else None
        definition = local if isinstance(local, _Definition) else self._reference(callee, module)
        if definition is not None:
            function = definition.node if isinstance(definition.node, ast.FunctionDef) else None
            if function:
                pairs = zip(function.args.args, node.args, strict=False)
                given |= {spec.arg: self._evaluate(each, scope, module) for spec, each in pairs}
            made = self._make(definition, given)
            unknown = made is None or (isinstance(made, Leaf) and isinstance(made.value, Opaque))
            if function and isinstance(made, Tree) and function.args.kwarg:  # as config_dict.create's settings
                named = [spec.arg for spec in (*function.args.args, *function.args.kwonlyargs)]
                made.children |= _tree({name: each for name, each in given.items() if name not in named}).children
            passes_on = unknown or (isinstance(made, Tree) and not made.children)
            return _tree(given) if given and passes_on and function else made
        return self._known_call(name, node, given, scope, module)

    def _known_call(self, name: str, node: ast.Call, given: _Scope, scope: _Scope, module: _Module) -> _Found | None:
        """Calls whose meaning needs no source: dataclasses' fields, copies, conversions; else its keyword arguments."""
        if name == "field" and given.keys() & {"default", "default_factory"}:
            default = given.get("default", given.get("default_factory"))
            return self._make(default, {}) if isinstance(default, _Definition) else default
        owner = [node.func.value] if isinstance(node.func, ast.Attribute) else []
        if name in ("deepcopy", "copy", "replace") and (node.args or owner):
            original = self._evaluate((node.args or owner)[0], scope, module)
            return Tree({**original.copy().children, **_tree(given).children}) if isinstance(original, Tree) else None
        if name in _CONVERSIONS and len(node.args) == 1:
            value = _calculate(_CONVERSIONS[name], self._evaluate(node.args[0], scope, module))
            return None if value is None else Leaf(value, module.path, node.lineno)
        return _tree(given) if given or not node.args else None


_FOLLOWED: Mapping[type[ast.expr], Callable[..., _Found | None]] = {
    ast.Constant: lambda _, node, __, module: Leaf(node.value, module.path, node.lineno),
    ast.UnaryOp: SourceReader._number,
    ast.BinOp: SourceReader._number,
    ast.Name: SourceReader._name,
    ast.Attribute: SourceReader._attribute,
    ast.Dict: SourceReader._dictionary,
    ast.List: SourceReader._sequence,
    ast.Tuple: SourceReader._sequence,
    ast.Lambda: lambda _, node, __, module: _Definition(node, module),
    ast.Call: SourceReader._call,
}


def _parse(path: Path) -> _Module:
    text = read_bounded_text(path, MOST_BYTES)
    body = ast.parse(text).body
    comments = {
        token.start[0]: token.string.lstrip("# ")
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT
    }
    names: dict[str, ast.stmt | _Import] = {}
    stars: list[_Import] = []
    for each in _flat_statements(body):
        if isinstance(each, ast.ClassDef | ast.FunctionDef):
            names[each.name] = each
        elif isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name):
            names[each.targets[0].id] = each
        elif isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            names[each.target.id] = each
        elif isinstance(each, ast.ImportFrom):
            found = {one.asname or one.name: _Import(each.module or "", each.level, one.name) for one in each.names}
            stars += [found.pop("*")] if "*" in found else []
            names |= found
        elif isinstance(each, ast.Import):
            names |= {one.asname: _Import(one.name) for one in each.names if one.asname}
    return _Module(path, text, body, comments, names, stars)


def _flat_statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    for each in body:
        if isinstance(each, ast.If | ast.Try):
            yield from _flat_statements([*each.body, *each.orelse])
        else:
            yield each


@lru_cache(maxsize=10_000)
def _module_files(folder: Path, imported: _Import, submodule: str = "") -> list[Path]:
    """Files that an import may mean: relative to the importer's folder, or below one that it is in."""
    above = [folder, *folder.parents]
    roots = above[imported.level - 1 : imported.level]
    parts = [part for part in (*imported.module.split("."), submodule) if part]
    if not imported.level:
        top = parts[0] if parts else ""
        roots = [each for each in above if (each / top).exists() or (each / f"{top}.py").exists()]
    return [path for root in roots for path in _files_of(root.joinpath(*parts))]


def _files_of(base: Path) -> list[Path]:
    """A module's file, a package's, or the folder of a package that has none."""
    found = [path for path in (base.with_name(f"{base.name}.py"), base / "__init__.py") if path.is_file()]
    return found or ([base] if base.is_dir() else [])


def _assign(target: ast.expr, value: _Found, scope: _Scope) -> None:
    """Set a name, an attribute or an item; settings between are made where a base class out of reach has them."""
    if isinstance(target, ast.Name):
        scope[target.id] = value
        return
    steps: list[str] = []
    node = target
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Attribute):
            steps, node = [node.attr, *steps], node.value
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            steps, node = [str(node.slice.value), *steps], node.value
        else:
            return
    tree = scope.get(node.id)
    for step in steps[:-1]:
        if not isinstance(tree, Tree):
            return
        if not isinstance(tree.children.get(step), Tree):
            tree.children[step] = Tree()
        tree = tree.children[step]
    if isinstance(tree, Tree) and not isinstance(value, _Definition):
        tree.children[steps[-1]] = value


def _tree(found: _Scope) -> Tree:
    return Tree(
        {name: each for name, each in found.items() if not isinstance(each, _Definition)}
        | {
            name: Leaf(Opaque(each.node.name), each.module.path, each.node.lineno)
            for name, each in found.items()
            if isinstance(each, _Definition) and not isinstance(each.node, ast.Lambda)
        }
    )


_COMPARISONS: Mapping[type[ast.cmpop], Callable[[object, object], object]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.In: lambda one, several: operator.contains(several, one),  # type: ignore[arg-type]
    ast.NotIn: lambda one, several: not operator.contains(several, one),  # type: ignore[arg-type]
}
_OPERATIONS: Mapping[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: lambda base, exponent: float(base) ** float(exponent),
    ast.USub: operator.neg,
}
_CONVERSIONS: Mapping[str, Callable[..., Any]] = {"int": int, "float": float, "round": round}


def _calculate(operation: Callable[..., Any], *found: _Found) -> float | None:
    """A number that literals give; texts and large numbers are left alone."""
    numbers = [each.value for each in found if isinstance(each, Leaf) and type(each.value) in (int, float)]
    if len(numbers) < len(found):
        return None
    try:
        value = operation(*numbers)
    except (ZeroDivisionError, OverflowError):
        return None
    return value if not isinstance(value, complex) and abs(value) < _LARGEST else None
