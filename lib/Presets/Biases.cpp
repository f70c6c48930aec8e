//===- Biases.cpp - Scores of today's models ---------------------------------===//
#include "Systems.h"
#include <cmath>

namespace attn::presets {

using Spec = llvm::Expected<std::string>;

static std::string maskClause(const Settings &set) { return set.isOn("causal") ? " mask(causal)" : ""; }

Preset alibi() {
  return {"alibi",
          "Press et al., Train Short, Test Long (2022)",
          "dense",
          "O(N^2)",
          /*decodes=*/true,
          {causalSetting("on")},
          [](const Settings &set) -> Spec {
            return "!s = tensor<?xf32>        // [heads]: 2^(-8 (h + 1) / heads) for a power of two\n\n" +
                   attention("alibi", R"(score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %slope = tensor.extract %slopes[%h] : !s
    %distance = arith.subi %j, %i : index
    %steps = arith.index_cast %distance : index to i64
    %signed = arith.sitofp %steps : i64 to f32
    %far = math.absf %signed : f32
    %penalty = arith.mulf %slope, %far : f32
    %biased = arith.subf %s, %penalty : f32
    attn.yield %biased : f32
  })" + maskClause(set),
                             ", %slopes: !s");
          }};
}

Preset learnedSinks() {
  return {"learned-sinks",
          "OpenAI, gpt-oss (2025); logits of 0: Miller, Attention Is Off By One (2023)",
          "fixed",
          "O(N window), or O(N^2)",
          /*decodes=*/true,
          {Setting::number("window", 0, 0, "keys that a query sees, its own among them; 0: all before it")},
          [](const Settings &set) -> Spec {
            int64_t window = set.number("window");
            return "!s = tensor<?xf32>        // [heads]: logits that take weight and have no value\n\n" +
                   attention("learned_sinks",
                             "sink(%sinks : !s) mask(causal" +
                                 (window ? " and window(left = " + std::to_string(window - 1) + ")" : std::string()) +
                                 ")",
                             ", %sinks: !s");
          }};
}

Preset sigmoid() {
  return {"sigmoid",
          "Ramapuram et al., Theory, Analysis, and Best Practices for Sigmoid Self-Attention (2024)",
          "dense",
          "O(N^2)",
          /*decodes=*/true,
          {causalSetting("on")},
          [](const Settings &set) -> Spec { // scores start at -log M, so that weights add up to about 1
            return attention("sigmoid", R"(normalizer(sigmoid) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %two = arith.constant 2 : index
    %keys = tensor.dim %k, %two : !t
    %integer = arith.index_cast %keys : index to i64
    %number = arith.sitofp %integer : i64 to f32
    %log = math.log %number : f32
    %lower = arith.subf %s, %log : f32
    attn.yield %lower : f32
  })" + maskClause(set));
          }};
}

Preset retention() {
  return {"retention",
          "Sun et al., Retentive Network (2023): the parallel form, before its group norm",
          "dense",
          "O(N^2)",
          /*decodes=*/true,
          {},
          [](const Settings &) -> Spec {
            return "!s = tensor<?xf32>        // [heads]: log2 of the decay\n\n" + attention("retention",
                                                                                             R"(normalizer(none) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %rate = tensor.extract %rates[%h] : !s
    %distance = arith.subi %i, %j : index
    %steps = arith.index_cast %distance : index to i64
    %past = arith.sitofp %steps : i64 to f32
    %exponent = arith.mulf %rate, %past : f32
    %decay = math.exp2 %exponent : f32
    %decayed = arith.mulf %s, %decay : f32
    attn.yield %decayed : f32
  } mask(causal))",
                                                                                             ", %rates: !s");
          }};
}

Preset softCap() {
  return {"soft-cap",
          "Gemma Team, Gemma 2 (2024)",
          "dense",
          "O(N^2)",
          /*decodes=*/true,
          {Setting::number("cap", 50, 1, "scores become cap tanh(score / cap)"), causalSetting("on")},
          [](const Settings &set) -> Spec {
            return attention("soft_cap", set.fill(R"(score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %cap = arith.constant $cap.0 : f32
    %part = arith.divf %s, %cap : f32
    %bent = math.tanh %part : f32
    %capped = arith.mulf %bent, %cap : f32
    attn.yield %capped : f32
  })") + maskClause(set));
          }};
}

/// The least distance of each bucket behind the exact ones, whose width grows with the distance.
static std::vector<int64_t> bucketStarts(int64_t buckets, int64_t maxDistance) {
  int64_t exact = buckets / 2;
  std::vector<int64_t> starts;
  for (int64_t distance = exact; distance <= maxDistance; ++distance) {
    double place = std::log(double(distance) / exact) / std::log(double(maxDistance) / exact) * (buckets - exact);
    while (exact + int64_t(starts.size()) < std::min(exact + int64_t(place), buckets - 1))
      starts.push_back(distance);
  }
  return starts;
}

/// Arithmetic from %n, a distance that is not negative, to its bucket: %n cut at the exact ones, and one more for each
/// start that it reaches. What is returned names the result.
static std::string addBuckets(std::string &text, int64_t buckets, int64_t maxDistance) {
  text += "    %exact = arith.constant " + std::to_string(buckets / 2) + " : index\n" +
          "    %bucket0 = arith.minsi %n, %exact : index\n";
  std::string last = "%bucket0";
  for (auto [index, start] : llvm::enumerate(bucketStarts(buckets, maxDistance))) {
    std::string k = std::to_string(index + 1);
    text += "    %start" + k + " = arith.constant " + std::to_string(start) + " : index\n    %reached" + k +
            " = arith.cmpi sge, %n, %start" + k + " : index\n    %one" + k + " = arith.index_castui %reached" + k +
            " : i1 to index\n    %bucket" + k + " = arith.addi " + last + ", %one" + k + " : index\n";
    last = "%bucket" + k;
  }
  return last;
}

Preset t5() {
  return {"t5-bias",
          "Raffel et al., T5 (2020): a learnt bias by distance, in buckets; scores are not scaled",
          "dense",
          "O(N^2)",
          /*decodes=*/true,
          {Setting::number("buckets", 32, 4, "of distances; without `causal` half of them for either side"),
           Setting::number("max_distance", 128, 2, "from which on all distances share the last bucket"),
           causalSetting("on")},
          [](const Settings &set) -> Spec {
            bool both = !set.isOn("causal");
            int64_t buckets = set.number("buckets") / (both ? 2 : 1), farthest = set.number("max_distance");
            if (farthest <= buckets / 2)
              return llvm::createStringError("max_distance = %lld should be more than %lld, the exact buckets",
                                             (long long)farthest, (long long)(buckets / 2));
            std::string text = "    %past = arith.subi %i, %j : index\n";
            // Without a future, distances to keys behind the query count as 0; the mask drops them.
            text += both ? "    %n = math.absi %past : index\n"
                         : "    %zero = arith.constant 0 : index\n    %n = arith.maxsi %past, %zero : index\n";
            std::string bucket = addBuckets(text, buckets, farthest);
            if (both) {
              text +=
                  set.fill("    %zero = arith.constant 0 : index\n    %later = arith.cmpi slt, %past, %zero : index\n"
                           "    %half = arith.constant $half : index\n"
                           "    %side = arith.select %later, %half, %zero : index\n    %place = arith.addi $bucket, "
                           "%side : index\n",
                           {{"half", std::to_string(buckets)}, {"bucket", bucket}});
              bucket = "%place";
            }
            return "!r = tensor<?x?xf32>      // [heads, buckets]\n\n" +
                   attention("t5_bias",
                             "scale(1.0) score {\n  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):\n" +
                                 text + "    %bias = tensor.extract %biases[%h, " + bucket +
                                 "] : !r\n    %biased = arith.addf %s, %bias : f32\n    attn.yield %biased : f32\n  }" +
                                 maskClause(set),
                             ", %biases: !r");
          }};
}

} // namespace attn::presets
