//===- Shrink.cpp - Smaller cases that fail in the same way ---------------===//
#include "Case.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include <chrono>

namespace attn::fuzz {
namespace {

using Clock = std::chrono::steady_clock;

class Shrinker {
public:
  Shrinker(Case failing, const Outcome &outcome, double seconds)
      : best(std::move(failing)), kind(outcome.kind),
        end(Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds))) {}

  Case run() {
    bool progress = true;
    while (progress && Clock::now() < end) {
      progress = shrinkRuns();
      progress |= shrinkOps();
      for (size_t op = 0; op < best.ops.size(); ++op) {
        progress |= shrinkTree(op, [](Attention &a) -> std::optional<Expression> & { return a.mask; });
        progress |= shrinkTree(op, [](Attention &a) -> std::optional<Expression> & { return a.score; });
      }
      progress |= shrinkOptions();
    }
    return best;
  }

private:
  bool attempt(llvm::function_ref<void(Case &)> change) {
    if (Clock::now() >= end)
      return false;
    Case smaller = best;
    change(smaller);
    dropUnused(smaller);
    std::string text = render(smaller);
    bool same = text == render(best) && smaller.variants.size() == best.variants.size();
    Outcome outcome = checkApart(smaller);
    if (outcome.kind != kind)
      return false;
    best = std::move(smaller);
    return !same;
  }

  /// Tensors that no text speaks of.
  static void dropUnused(Case &smaller) {
    std::string text = render(smaller);
    text = text.substr(text.find(" {\n")) + " ";
    llvm::erase_if(smaller.tensors, [&](const Tensor &tensor) {
      for (const char *end : {",", " ", "[", ")"})
        if (text.find("%" + tensor.name + end) != std::string::npos && !tensor.constant)
          return false;
      // A constant's own line is one mention.
      size_t first = text.find("%" + tensor.name + " ");
      return !tensor.constant || text.find("%" + tensor.name, first + 1) == std::string::npos;
    });
  }

  bool shrinkRuns() {
    bool progress = false;
    for (size_t at = best.variants.size(); at-- > 0 && best.variants.size() > 1;)
      if (at < best.variants.size())
        progress |= attempt([&](Case &c) {
          Variant one = c.variants[at];
          c.variants = {one};
        });
    return progress;
  }

  bool shrinkOps() {
    bool progress = false;
    while (best.ops.size() > 1 && attempt([](Case &c) {
             c.ops.pop_back();
             c.ops.back().returned = true;
           }))
      progress = true;
    while (best.ops.size() > 1 && attempt([](Case &c) {
             c.ops.erase(c.ops.begin());
             c.ops.front().joined.clear();
           }))
      progress = true;
    return progress;
  }

  using Select = llvm::function_ref<std::optional<Expression> &(Attention &)>;

  /// Replaces a tree by nothing, and each subtree by one of its own of the same type or by a constant.
  bool shrinkTree(size_t op, Select select) {
    if (!select(best.ops[op]))
      return false;
    if (attempt([&](Case &c) { select(c.ops[op]).reset(); }))
      return true;
    bool progress = false;
    for (size_t node = 0; node < count(*select(best.ops[op])); ++node) {
      std::vector<Expression> choices;
      collect(at(*select(best.ops[op]), node), choices);
      for (const Expression &choice : choices)
        if (attempt([&](Case &c) {
              at(*select(c.ops[op]), node) = choice;
              c.ops[op].sugar &= !c.ops[op].mask || c.ops[op].mask->hasSugar();
            })) {
          progress = true;
          break;
        }
    }
    return progress;
  }

  static size_t count(const Expression &e) {
    size_t total = 1;
    for (const Expression &operand : e.operands)
      total += count(operand);
    return total;
  }

  static Expression &at(Expression &e, size_t number) {
    Expression *found = &e;
    while (number > 0) {
      --number;
      for (Expression &operand : found->operands) {
        size_t size = count(operand);
        if (number < size) {
          found = &operand;
          break;
        }
        number -= size;
      }
    }
    return *found;
  }

  static void collect(const Expression &root, std::vector<Expression> &choices) {
    auto add = [&](auto &self, const Expression &e) -> void {
      for (const Expression &operand : e.operands) {
        if (operand.type == root.type)
          choices.push_back(operand);
        self(self, operand);
      }
    };
    add(add, root);
    bool isSimple = root.isPlace() || llvm::StringRef(root.text).starts_with("arith.constant");
    if (isSimple)
      return;
    auto constant = [&](std::string value) {
      choices.push_back(
          {"arith.constant " + value + (root.type == "i1" ? "" : " : " + root.type), root.type, {}, "", 0});
    };
    if (root.type == "i1") {
      constant("true");
      constant("false");
    } else if (root.type == "f32") {
      choices.push_back({"@s", "f32", {}, "", 0});
      constant("0.0");
    } else if (root.type[0] != 'f' && root.type[0] != 'b') {
      constant("0");
      constant("1");
      if (root.type == "index") {
        choices.push_back({"@i", "index", {}, "", 0});
        choices.push_back({"@j", "index", {}, "", 0});
      }
    }
  }

  bool shrinkOptions() {
    bool progress = false;
    auto set = [&](llvm::function_ref<void(Case &)> change, bool isDone) {
      if (!isDone)
        progress |= attempt(change);
    };
    for (size_t op = 0; op < best.ops.size(); ++op) {
      set([&](Case &c) { c.ops[op].lse = false; }, !best.ops[op].lse);
      set([&](Case &c) { c.ops[op].joined.clear(); }, best.ops[op].joined.empty());
      set([&](Case &c) { c.ops[op].sink.clear(); }, best.ops[op].sink.empty());
      set([&](Case &c) { c.ops[op].queryRows.clear(); }, best.ops[op].queryRows.empty());
      set([&](Case &c) { c.ops[op].keyRows.clear(); }, best.ops[op].keyRows.empty());
      set([&](Case &c) { c.ops[op].bias.clear(); }, best.ops[op].bias.empty());
      set([&](Case &c) { c.ops[op].table.clear(), c.ops[op].bias.clear(); }, best.ops[op].table.empty());
      set([&](Case &c) { c.ops[op].counted = false; }, !best.ops[op].counted);
      set([&](Case &c) { c.ops[op].scale.clear(); }, best.ops[op].scale.empty());
      set([&](Case &c) { c.ops[op].bottomRight = false; }, !best.ops[op].bottomRight);
    }
    set([](Case &c) { c.schedule = {}; }, !(best.schedule.queryTile || best.schedule.keyTile || best.schedule.group ||
                                            best.schedule.split || !best.schedule.reindex));
    set([](Case &c) { c.cpu = "native"; }, best.cpu == "native");
    for (size_t v = 0; v < best.variants.size(); ++v) {
      set([&](Case &c) { c.variants[v].layout = Layout::Contiguous; }, best.variants[v].layout == Layout::Contiguous);
      set([&](Case &c) { c.variants[v].guard = Guard::None; }, best.variants[v].guard == Guard::None);
      set([&](Case &c) { c.variants[v].relation = Relation::Free; }, best.variants[v].relation == Relation::Free);
      set([&](Case &c) { c.variants[v].factor = 1; }, best.variants[v].factor == 1);
      set([&](Case &c) { c.variants[v].poisonEvery = 0; }, best.variants[v].poisonEvery == 0);
      set([&](Case &c) { c.variants[v].hugeEvery = 0; }, best.variants[v].hugeEvery == 0);
      set([&](Case &c) { c.variants[v].threads = 1; }, best.variants[v].threads == 1);
      for (size_t k = 0; k < best.isStatic.size(); ++k)
        for (int64_t part : {16, 4, 2, 1}) {
          int64_t now = best.variants[v].variables[k], next = part == 16 ? 1 : part == 1 ? now - 1 : now - now / part;
          if (now > 1 && next >= 1 && next < now)
            progress |= attempt([&](Case &c) { c.variants[v].variables[k] = next; });
        }
    }
    return progress;
  }

  Case best;
  std::string kind;
  Clock::time_point end;
};

} // namespace

Case shrink(Case failing, const Outcome &outcome, double seconds) {
  return Shrinker(std::move(failing), outcome, seconds).run();
}

} // namespace attn::fuzz
