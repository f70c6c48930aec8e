"""Specs for tests: one attention op from its pieces."""


def attention(mask="", score="", align="", scale="", args="", lse=False, element="f32", schedule="",
              dim="?", value_dim=None, join="", sink="", normalizer="", relative="", scores="", heads="?", key_heads="?", queries="?",
              query_rows="", key_rows=""):
    """A function @f of q, k, v (or `scores`, a type, and v), lists of rows rq and rk where their types are given, and `args`
    ("%doc: tensor<?x?xi32>, ..."), returning out (and lse)."""
    q = f"tensor<?x{heads}x{queries}x{dim}x{element}>"
    k = f"tensor<?x{key_heads}x?x{dim}x{element}>"
    v = f"tensor<?x{key_heads}x?x{value_dim or dim}x{element}>"
    lists = {"q": query_rows, "k": key_rows}
    extra = "".join(f", %r{name}: {rows}" for name, rows in lists.items() if rows) + (", " + args if args else "")
    results, types, names = "%out", f"tensor<?x{heads}x{queries}x{value_dim or dim}x{element}>", "%out"
    if lse:
        results, types, names = "%out, %lse", f"{types}, tensor<?x{heads}x{queries}xf32>", "%out, %lse"
    parts = [f"query_rows(%rq : {query_rows})" if query_rows else "", f"key_rows(%rk : {key_rows})" if key_rows else "", f"align({align})" if align else "", f"normalizer({normalizer})" if normalizer else "", f"join({join})" if join else "",
             f"sink({sink})" if sink else "", f"relative({relative})" if relative else "", f"scale({scale})" if scale else "", score_region(score), mask_part(mask),
             f"schedule(#attn.schedule<{schedule}>)" if schedule else ""]
    arguments, operands, given = f"%q: {q}, %k: {k}", "%q, %k", f"{q}, {k}"
    if scores:
        arguments, operands, given = f"%p: {scores}", "scores(%p)", scores
    return (
        f"func.func @f({arguments}, %v: {v}{extra}) -> ({types}) {{\n"
        f"  {results} = attn.attention {operands}, %v {' '.join(p for p in parts if p)} : {given}, {v} -> {types}\n"
        f"  return {names} : {types}\n}}\n"
    )


def mask_part(mask):
    """Short form, or a region body where the text holds an attn.yield."""
    if not mask:
        return ""
    if "attn.yield" not in mask:
        return f"mask({mask})"
    return "mask {\n  ^bb0(%b: index, %h: index, %i: index, %j: index):\n" + mask + "\n  }"


def score_region(score):
    if not score:
        return ""
    return "score {\n  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):\n" + score + "\n  }"


def index_region(lines, constants=()):
    """Lines of `arith` with the type of every line left to the caller; constants by name."""
    head = [f"    %c{n} = arith.constant {n} : index" for n in constants]
    return "\n".join(head + ["    " + line for line in lines])
