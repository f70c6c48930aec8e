//===- Linear.cpp - Linear attention and its decays --------------------------===//
#include "Systems.h"
#include <cmath>

namespace attn::presets {
namespace {

using Spec = llvm::Expected<std::string>;

/// One linear attention of a spec.
struct LinearSystem {
  std::string name;
  std::string features; // lines that make %fq and %fk, of type !f
  std::string decay;    // the type of an argument %decay, the logarithms of factors
  bool normalized = false;
  std::string scale;
};

Setting stateSetting() {
  return Setting::word("state", {"off", "on"},
                       "takes the sums of earlier tokens, and returns them with those of these");
}

/// `text` where `there`.
std::string when(bool there, llvm::StringRef text) { return there ? text.str() : ""; }

std::string writeTypes(const LinearSystem &system) {
  bool features = !system.features.empty();
  std::string width = features ? "?" : "${head_dim}";
  return when(features, "!f = tensor<?x?x?x?xf32>\n") +
         when(system.normalized, "!w = tensor<?x?x?xf32>\n!z = tensor<?x?x" + width + "xf32>\n") + "!s = tensor<?x?x" +
         width + "x${head_dim}xf32>\n" + when(!system.decay.empty(), "!d = " + system.decay + "\n") + "\n";
}

std::string writeLinear(const Settings &set, const LinearSystem &system) {
  bool state = set.isOn("state"), decays = !system.decay.empty(), features = !system.features.empty();
  std::string z = when(system.normalized, ", !z"), causal = when(set.isOn("causal"), "causal "),
              decay = when(decays, "decay(%decay : !d) ");
  std::string text = writeTypes(system) + "func.func @" + system.name + "(%q: !t, %k: !t, %v: !t" +
                     when(decays, ", %decay: !d") + when(state && system.normalized, ", %z0: !z") +
                     (state ? ", %s0: !s) -> (!t" + z + ", !s) {\n" : ") -> !t {\n") + system.features;
  std::map<std::string, std::string> names{
      {"qk", features ? "%fq, %fk" : "%q, %k"}, {"types", features ? "!f, !f" : "!t, !t"}, {"how", causal + decay}};
  if (system.normalized)
    text += set.fill("  %w, %z = attn.linear_weights $qk $how", names) + when(state, "state(%z0 : !z) ") +
            set.fill(": $types -> !w, !z\n", names);
  text += set.fill("  %out, %s = attn.linear_attention $qk, %v " + system.scale, names) + causal +
          when(system.normalized, "divide(%w : !w) ") + decay + when(state, "state(%s0 : !s) ") +
          set.fill(": $types, !t -> !t, !s\n", names);
  std::string results = when(state, when(system.normalized, ", %z") + ", %s") + " : !t" + when(state, z + ", !s");
  return set.fill(text + "  return %out" + results + "\n}\n");
}

/// scale(1 / sqrt(head_dim)).
std::string rootScale(const Settings &set) {
  return "scale(" + std::to_string(1 / std::sqrt(double(set.number("head_dim")))) + ") ";
}

} // namespace

Preset linear() {
  return {"linear",
          "Katharopoulos et al., Transformers are RNNs (2020): features elu(x) + 1",
          "kernel",
          "O(N)",
          /*decodes=*/true,
          {causalSetting("on"), stateSetting()},
          [](const Settings &set) -> Spec {
            return writeLinear(set, {"linear",
                                     "  %fq = attn.feature_map %q elu_plus_one : !t -> !f\n"
                                     "  %fk = attn.feature_map %k elu_plus_one : !t -> !f\n",
                                     "", /*normalized=*/true, ""});
          }};
}

/// A recurrence over queries and keys as they come.
static Preset decaying(std::string name, std::string source, std::string decay, bool scaled) {
  return {name,
          source,
          "recurrence",
          "O(N)",
          /*decodes=*/true,
          {Setting::word("causal", {"on"}, "a decay runs from token to token"), stateSetting()},
          [=](const Settings &set) -> Spec {
            return writeLinear(set, {name, "", decay, /*normalized=*/false, scaled ? rootScale(set) : ""});
          }};
}

Preset retnet() {
  return decaying("retnet", "Sun et al., Retentive Network (2023): retention, one decay for each head",
                  "tensor<?xf32> // [heads]: log(1 - 2^(-5 - h)), say", /*scaled=*/true);
}

Preset mamba2() {
  return decaying("mamba2", "Dao and Gu, Mamba-2 (2024): queries are C, keys dt B, values x, decays dt A",
                  "tensor<?x?x?xf32>", /*scaled=*/false);
}

Preset gla() {
  return decaying("gla", "Yang et al., Gated Linear Attention (2023): a decay for each feature of a token",
                  "tensor<?x?x?x${head_dim}xf32>", /*scaled=*/true);
}

} // namespace attn::presets
