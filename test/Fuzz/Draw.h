//===- Draw.h - Random masks, scores and attention ops ----------*- C++ -*-===//
#ifndef ATTN_TEST_FUZZ_DRAW_H
#define ATTN_TEST_FUZZ_DRAW_H

#include "Case.h"
#include <random>

namespace attn::fuzz {

class Generator {
public:
  Generator(uint64_t seed, uint64_t number, const std::string &chip);
  Case draw();

private:
  // Numbers
  int64_t below(int64_t count) { return int64_t(random() % uint64_t(count)); }
  int64_t between(int64_t least, int64_t most) { return least + below(most - least + 1); }
  bool chance(int percent) { return below(100) < percent; }
  template <typename T>
  T pick(std::initializer_list<T> choices) {
    return choices.begin()[below(int64_t(choices.size()))];
  }
  std::string text(int64_t number) { return std::to_string(number); }

  // Functions (Draw.cpp)
  Extent variable();
  void drawFirst();
  void drawNext();
  void drawRegions(Attention &op);
  void drawLists(Attention &op);
  std::string list(Extent heads, Extent rows);
  void drawVariants();
  void drawVariables(Variant &variant);
  Extent fresh(int64_t multiple = 1);
  Extent freshDim();
  std::string operand(const char *stem, std::vector<Extent> dims);

  // Captured tensors: answers the name
  std::string capture(const std::string &element, std::vector<Extent> dims, Filling filling, int64_t least = 0,
                      int64_t most = 7, double factor = 1);
  Extent covering(char place, int64_t divisor = 1);

  // Masks (DrawMasks.cpp)
  Expression truth(int depth);
  Expression named();
  Expression byDistance();
  Expression byBlock();
  Expression byGrid();
  Expression byToken();
  Expression byTable();
  Expression set();
  Expression pair(const std::string &name, const std::vector<std::pair<std::string, std::string>> &parameters,
                  bool onlyKey = false);

  // Arithmetic (DrawArithmetic.cpp)
  Expression integer(const std::string &type, int depth);
  Expression integerLeaf(const std::string &type);
  Expression binary(const std::string &type, int depth);
  Expression division(const std::string &type, int depth);
  Expression shift(const std::string &type, int depth);
  Expression castTo(const std::string &type, int depth);
  Expression constant(const std::string &type);
  Expression extract(const std::string &element, int depth);
  Expression comparison(int depth);
  Expression number(int depth);
  Expression numberLeaf();
  Expression function(int depth);
  Expression place(char letter) { return {std::string("@") + letter, "index", {}, "", 0}; }
  int64_t size() { return chance(80) ? between(1, 40) : pick<int64_t>({1, 2, 16, 32, 48, 64, 100, 128}); }

  std::mt19937_64 random;
  Case drawn;
  Attention *current = nullptr;
  bool onlyNamed = false, inBlocks = false, inMask = false;
  bool hasScore = false; // a score expression may still use @s
};

} // namespace attn::fuzz

#endif // ATTN_TEST_FUZZ_DRAW_H
