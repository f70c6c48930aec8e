//===- DrawMasks.cpp - Random conditions ----------------------------------===//
#include "Draw.h"

namespace attn::fuzz {

using Parameters = std::vector<std::pair<std::string, std::string>>;

/// A predicate of query and key. Its operands are mostly the positions, which is what the short form can say.
Expression Generator::pair(const std::string &name, const Parameters &parameters, bool onlyKey) {
  Expression result;
  result.type = "i1";
  std::string attributes, sugar;
  for (auto &[key, value] : parameters) {
    bool isList = value.front() == '[';
    attributes += (attributes.empty() ? " {" : ", ") + key + " = " +
                  (isList ? "array<i64: " + value.substr(1, value.size() - 2) + ">" : value + " : i64");
    sugar += (sugar.empty() ? "(" : ", ") + key + " = " + value;
  }
  attributes += attributes.empty() ? "" : "}";
  result.text = "attn." + name + (onlyKey ? " $0" : " $0, $1") + attributes;
  bool plain = onlyNamed || chance(80);
  if (plain)
    result.sugar = name + sugar + (sugar.empty() ? "" : ")");
  if (!onlyKey)
    result.operands.push_back(plain ? place('i') : integer("index", 1));
  result.operands.push_back(plain ? place('j') : integer("index", 1));
  return result;
}

Expression Generator::byDistance() {
  auto count = [&] { return text(chance(90) ? between(0, 60) : between(0, 1000)); };
  switch (below(4)) {
  case 0:
    return pair("causal", {});
  case 1: {
    Parameters sides;
    int64_t which = between(1, 3);
    if (which & 1)
      sides.push_back({"left", count()});
    if (which & 2)
      sides.push_back({"right", count()});
    return pair("window", sides);
  }
  case 2: {
    Parameters parameters;
    if (chance(70))
      parameters.push_back({"left", text(between(0, 20))});
    if (chance(50))
      parameters.push_back({"right", text(between(0, 20))});
    parameters.push_back({"dilation", text(size())});
    return pair("dilated_window", parameters);
  }
  default:
    return pair("stride", {{"size", text(size())}});
  }
}

Expression Generator::byBlock() {
  std::string block = text(size());
  switch (below(4)) {
  case 0:
    return pair("same_block", {{"size", block}});
  case 1:
    return pair("chunk_lookback", {{"size", block}, {"before", text(between(0, 3))}});
  case 2:
    return pair("local_blocks", {{"size", block}, {"before", text(between(0, 30))}, {"after", text(between(0, 30))}});
  default: {
    int64_t length = size();
    return pair("last_columns", {{"block", text(length)}, {"count", text(between(1, length))}}, /*onlyKey=*/true);
  }
  }
}

Expression Generator::byGrid() {
  auto two = [&](int64_t least, int64_t most) {
    return "[" + text(between(least, most)) + ", " + text(between(least, most)) + "]";
  };
  std::string width = text(size());
  switch (below(inBlocks ? 3 : 5)) {
  case 0:
    return pair("same_row", {{"width", width}});
  case 1:
    return pair("same_column", {{"width", width}});
  case 2:
    return pair("local_blocks_2d", {{"width", width}, {"block", two(1, 9)}, {"flange", two(0, 5)}});
  case 3:
    return pair("neighborhood", {{"size", text(size())}});
  default:
    return pair("neighborhood_2d", {{"width", width}, {"size", two(1, 9)}});
  }
}

Expression Generator::byToken() {
  std::string element = pick({"i8", "i16", "i32", "i64"});
  switch (below(5)) {
  case 4: {
    int64_t period = between(1, 3);
    Expression result = pair("heads", {{"period", text(period)}, {"index", text(below(period))}}, /*onlyKey=*/true);
    result.operands = {place('h')};
    return result;
  }
  case 0:
    return pair("prefix", {{"length", text(between(1, 150))}}, /*onlyKey=*/true);
  case 1: {
    if (chance(60))
      return pair("global", {{"count", text(between(1, 20))}});
    std::string list;
    for (int64_t n = between(1, 4); n > 0; --n)
      list += (list.empty() ? "" : ", ") + text(between(0, 150));
    return pair("global", {{"tokens", "[" + list + "]"}});
  }
  case 2: {
    bool scalar = chance(30);
    std::string t = capture(element, scalar ? std::vector<Extent>{} : std::vector<Extent>{covering('b')},
                            Filling::Uniform, -2, 120);
    Expression result{"attn.key_length @b, @j, %" + t + " : !" + t, "i1", {}, "key_length(%" + t + " : !" + t + ")", 0};
    return result;
  }
  default: {
    std::string t =
        capture(element, {covering('b'), covering('i')}, chance(70) ? Filling::Documents : Filling::Uniform);
    return {"attn.same_document @b, @i, @j, %" + t + " : !" + t, "i1", {}, "same_document(%" + t + " : !" + t + ")", 0};
  }
  }
}

Expression Generator::byTable() {
  int64_t block = size(), rank = between(2, 4);
  std::vector<Extent> dims{covering('i', block), covering('j', block)};
  if (rank > 2)
    dims.insert(dims.begin(), covering('h'));
  if (rank > 3)
    dims.insert(dims.begin(), covering('b'));
  std::string t = capture(pick({"i1", "i8", "i32"}), dims, Filling::Uniform, 0, 1);
  return {"attn.block_mask @b, @h, @i, @j, %" + t + " {size = " + text(block) + " : i64} : !" + t,
          "i1",
          {},
          "block_mask(%" + t + " : !" + t + ", size = " + text(block) + ")",
          0};
}

/// Membership: of the key or the query in a set by batch and head, or of the key in the list of the query.
Expression Generator::set() {
  int64_t form = below(3), rank = form == 2 ? between(2, 4) : between(1, 3);
  std::string places =
      form == 2 ? std::string("bhi").substr(size_t(4 - rank)) : std::string("bh").substr(0, size_t(rank - 1));
  std::vector<Extent> dims;
  std::string at;
  for (char letter : places) {
    dims.push_back(covering(letter));
    at += (at.empty() ? "@" : ", @") + std::string(1, letter);
  }
  dims.push_back(Extent{-1, 1, 1, between(1, 8)});
  std::string t = capture(pick({"i8", "i16", "i32", "i64", "index"}), dims, Filling::Uniform, -4, inBlocks ? 8 : 120);
  std::string name = form == 0 ? "column_in" : form == 1 ? "row_in" : "in_table", value = form == 1 ? "@i" : "@j";
  return {
      "attn.contains %" + t + "[" + at + "], " + value + " : !" + t, "i1", {}, name + "(%" + t + " : !" + t + ")", 0};
}

Expression Generator::named() {
  switch (below(inBlocks ? 6 : 7)) {
  case 0:
  case 1:
    return byDistance();
  case 2:
    return byBlock();
  case 3:
    return byGrid();
  case 4:
    return byToken();
  case 5:
    return set();
  default:
    return byTable();
  }
}

Expression Generator::truth(int depth) {
  if (depth == 0 || chance(10)) {
    if (onlyNamed || chance(50))
      return named();
    return chance(2)    ? Expression{"arith.constant " + std::string(pick({"true", "false"})), "i1", {}, "", 0}
           : chance(10) ? extract("i1", 1)
                        : comparison(1 + int(below(3)));
  }
  auto make = [&](const std::string &op, const std::string &word, std::vector<Expression> operands) {
    return Expression{op, "i1", std::move(operands), word, 0};
  };
  switch (below(onlyNamed ? 12 : 15)) {
  case 0:
  case 1:
  case 2:
  case 3:
  case 4: {
    Expression a = truth(depth - 1);
    return make("arith.andi $0, $1 : i1", "($0 and $1)", {a, truth(depth - 1)});
  }
  case 5:
  case 6:
  case 7: {
    Expression a = truth(depth - 1);
    return make("arith.ori $0, $1 : i1", "($0 or $1)", {a, truth(depth - 1)});
  }
  case 8:
  case 9:
    return make("arith.xori $0, $1 : i1", "not $0",
                {truth(depth - 1), Expression{"arith.constant true", "i1", {}, "", 0}});
  case 10:
  case 11: {
    if (inBlocks)
      return truth(depth - 1);
    inBlocks = true;
    Expression result{"", "i1", {truth(depth - 1)}, "blocked", size()};
    inBlocks = false;
    return result;
  }
  case 12:
    return make("arith.xori $0, $1 : i1", "", {truth(depth - 1), truth(depth - 1)});
  case 13:
    return make("arith.select $0, $1, $2 : i1", "", {truth(depth - 1), truth(depth - 1), truth(depth - 1)});
  default:
    return make(std::string("arith.cmpi ") + pick({"eq", "ne", "ult", "sle"}) + ", $0, $1 : i1", "",
                {truth(depth - 1), truth(depth - 1)});
  }
}

} // namespace attn::fuzz
