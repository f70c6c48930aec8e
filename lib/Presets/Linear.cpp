//===- Linear.cpp - Linear attention and its decays --------------------------===//
#include "Systems.h"
#include <cmath>

namespace attn::presets {
namespace {

using Spec = llvm::Expected<std::string>;

/// One linear attention of a spec.
struct LinearSystem {
  std::string name = {};
  std::string features = {};   // lines that make %fq and %fk, of type !f
  std::string map = {};        // of queries and keys as they are read
  std::string parameters = {}; // further arguments, each after a comma
  std::string types = {};      // of these, and of what the lines use
  bool normalized = false;
  bool padded = false;     // by %there: features of keys are 0 where it is
  bool decays = false;     // by %decay of type !d
  bool stabilized = false; // the state has %c0, of which the lines make %c, of type !m
  std::string scale = {};
};

Setting stateSetting() {
  return Setting::word("state", {"off", "on"},
                       "takes the sums of earlier tokens, and returns them with those of these");
}

/// `text` where `is`.
std::string when(bool is, llvm::StringRef text) { return is ? text.str() : ""; }

std::string writeTypes(const LinearSystem &system) {
  bool features = !system.features.empty();
  std::string width = features ? "?" : "${head_dim}";
  return when(features, "!f = tensor<?x?x?x?xf32>\n!w = tensor<?x?x?xf32>\n") + when(system.padded, kThere) +
         when(system.normalized, "!z = tensor<?x?x" + width + "xf32>\n") + "!s = tensor<?x?x" + width +
         "x${head_dim}xf32>\n" + system.types + "\n";
}

std::string writeLinear(const Settings &set, const LinearSystem &system) {
  bool state = set.isOn("state"), features = !system.features.empty();
  std::string causal = when(set.isOn("causal"), "causal "), decay = when(system.decays, "decay(%decay : !d) ");
  std::string types = when(system.stabilized, ", !m") + when(system.normalized, ", !z") + ", !s";
  std::string states = system.normalized ? "state(%s0, %z0 : !s, !z) " : "state(%s0 : !s) ";
  std::string text = writeTypes(system) + "func.func @" + system.name + "(%q: !t, %k: !t, %v: !t" + system.parameters +
                     when(system.padded, ", %there: !there") + when(state && system.stabilized, ", %c0: !m") +
                     when(state && system.normalized, ", %z0: !z") +
                     (state ? ", %s0: !s) -> (!t" + types + ") {\n" : ") -> !t {\n") + system.features;
  text += "  %out, %s" + when(system.normalized, ", %z") + " = attn.linear_attention " +
          (features ? "%fq, %fk" : "%q, %k") + ", %v " + system.map + when(system.normalized, "normalize ") +
          system.scale + causal + decay + when(state, states) + (features ? ": !f, !f" : ": !t, !t") +
          ", !t -> !t, !s" + when(system.normalized, ", !z") + "\n";
  std::string more = when(system.stabilized, ", %c") + when(system.normalized, ", %z") + ", %s";
  return set.fill(text + "  return %out" + when(state, more) + " : !t" + when(state, types) + "\n}\n");
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
          {Setting::word("features", {"elu_plus_one", "relu", "exp", "abs", "square", "sigmoid"},
                         "the map of queries and keys, number by number"),
           causalSetting("on"), stateSetting(), paddingSetting()},
          [](const Settings &set) -> Spec {
            LinearSystem system{"linear"};
            system.normalized = true;
            system.padded = set.isOn("padding");
            if (set.isOn("padding"))
              system.features = set.fill("  %fq = attn.feature_map %q $features : !t -> !f\n"
                                         "  %fk_all = attn.feature_map %k $features : !t -> !f\n") +
                                dropPadding("fk", "fk_all", "!f");
            else
              system.map = "feature($features) ";
            return writeLinear(set, system);
          }};
}

/// Of padding no maximum is taken, but a number that all others are above.
constexpr const char *kIgnored =
    R"(  %seen = attn.compute(%sizes, %there) maps([affine_map<(b, h, n) -> (b, h, n)>, affine_map<(b, h, n) -> (b, n)>,
                                             affine_map<(b, h, n) -> (b, h, n)>]) initial(0.0) {
  ^bb0(%x: f32, %y: f32, %total: f32):
    %zero = arith.constant 0.0 : f32
    %least = arith.constant -3.0e38 : f32
    %is = arith.cmpf une, %y, %zero : f32
    %size = arith.select %is, %x, %least : f32
    attn.result %size : f32
  } : !w, !there -> !w
)";

/// Features that approximate a softmax. Their exponents are kept small by a maximum of keys: over all tokens or, where
/// a later token must not be seen, over those so far, with a decay as it grows.
static void addStabilizedFeatures(const Settings &set, LinearSystem &system, llvm::StringRef features) {
  bool causal = set.isOn("causal"), padded = set.isOn("padding");
  system.features = set.fill(features.str(), {{"causal", causal ? " causal" : ""},
                                              {"state", set.isOn("state") ? " state(%c0 : !m)" : ""},
                                              {"ignore", padded ? kIgnored : ""},
                                              {"seen", padded ? "seen" : "sizes"},
                                              {"fk", padded ? "fk_all" : "fk"}}) +
                    when(padded, dropPadding("fk", "fk_all", "!f"));
  system.types += "!m = tensor<?x?xf32>\n!d = tensor<?x?x?xf32>\n";
  system.decays = causal;
  system.stabilized = true;
}

/// Positive ones. Queries have a maximum over their features, which cancels.
constexpr const char *kPositive = R"(  %uq, %mq = attn.random_features %q, %projection softmax : !t, !p -> !f, !w
  %uk, %sizes = attn.random_features %k, %projection softmax : !t, !p -> !f, !w
$ignore  %m, %decay, %c = attn.running_max %$seen$causal$state : !w -> !w, !w, !m
  %fq = attn.feature_map %uq exp subtract(%mq : !w) plus($epsilon) : !f -> !f
  %$fk = attn.feature_map %uk exp subtract(%m : !w) plus($epsilon) : !f -> !f
)";
/// Cosines and sines, whose sizes are what has to be kept small: those of queries cancel.
constexpr const char *kTrigonometric =
    R"(  %uq, %lq = attn.random_features %q, %projection trigonometric : !t, !p -> !f, !w
  %uk, %sizes = attn.random_features %k, %projection trigonometric : !t, !p -> !f, !w
$ignore  %m, %decay, %c = attn.running_max %$seen$causal$state : !w -> !w, !w, !m
  %fq = attn.feature_map %uq trigonometric : !f -> !f
  %$fk = attn.feature_map %uk trigonometric logs(%sizes : !w) subtract(%m : !w) : !f -> !f
)";

static void addMappedFeatures(const Settings &set, LinearSystem &system) {
  bool padded = set.isOn("padding");
  system.features = set.fill("  %uq, %mq = attn.random_features %q, %projection : !t, !p -> !f, !w\n"
                             "  %uk, %mk = attn.random_features %k, %projection : !t, !p -> !f, !w\n"
                             "  %fq = attn.feature_map %uq $features plus($epsilon) : !f -> !f\n"
                             "  %$fk = attn.feature_map %uk $features plus($epsilon) : !f -> !f\n",
                             {{"fk", padded ? "fk_all" : "fk"}}) +
                    when(padded, dropPadding("fk", "fk_all", "!f"));
}

Preset performer() {
  return {"performer",
          "Choromanski et al., Rethinking Attention with Performers (2020)",
          "kernel",
          "O(N features)",
          /*decodes=*/true,
          {Setting::word("features",
                         {"softmax", "trigonometric", "relu", "elu_plus_one", "exp", "abs", "square", "sigmoid"},
                         "of a softmax, positive (FAVOR+) or trigonometric (FAVOR); or generalised: a map of products"),
           Setting::word("projection", {"shared", "per_head"}, "whether heads share directions"),
           Setting::word("epsilon", {"1.0e-06", "0.0", "1.0e-04", "1.0e-03"},
                         "added to features, but for trigonometric ones"),
           causalSetting(), stateSetting(), paddingSetting()},
          [](const Settings &set) -> Spec {
            if (set.isOn("state") && !set.isOn("causal"))
              return llvm::createStringError("state=on goes on from earlier tokens, so set causal=on with it");
            LinearSystem system{"performer"};
            system.parameters = ", %projection: !p";
            system.types = set.is("projection", "shared") ? "!p = tensor<?x${head_dim}xf32> // [features, head_dim]\n"
                                                          : "!p = tensor<?x?x${head_dim}xf32>\n";
            system.normalized = true;
            system.padded = set.isOn("padding");
            set.is("features", "softmax")         ? addStabilizedFeatures(set, system, kPositive)
            : set.is("features", "trigonometric") ? addStabilizedFeatures(set, system, kTrigonometric)
                                                  : addMappedFeatures(set, system);
            return writeLinear(set, system);
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
            LinearSystem system{name};
            system.parameters = ", %decay: !d";
            system.types = "!d = " + decay + "\n";
            system.decays = true;
            system.scale = scaled ? rootScale(set) : "";
            return writeLinear(set, system);
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
