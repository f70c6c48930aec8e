//===- attn-fuzz.cpp - Random specs: compiled code against the reference ---===//
//
//   attn-fuzz --seed=1 --seconds=50          draws cases until the time is over
//   attn-fuzz --seed=1 --case=17             one case, verbosely
//
// A case that fails is made smaller and printed, with a command that runs it again.
//
//===----------------------------------------------------------------------===//
#include "Case.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"
#include <chrono>
#include <csignal>
#include <cstring>
#include <map>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace llvm;
using namespace attn::fuzz;

namespace {

cl::OptionCategory category("attn-fuzz options");
cl::opt<uint64_t> seed("seed", cl::desc("Which cases (1)"), cl::init(1), cl::cat(category));
cl::opt<double> seconds("seconds", cl::desc("How long to draw cases (50)"), cl::init(50), cl::cat(category));
cl::opt<uint64_t> cases("cases", cl::desc("At most so many cases"), cl::init(UINT64_MAX), cl::cat(category));
cl::opt<uint64_t> first("first", cl::desc("Number of the first case (0)"), cl::init(0), cl::cat(category));
cl::opt<int64_t> only("case", cl::desc("Run this case alone"), cl::init(-1), cl::cat(category));
cl::opt<std::string> chip("chip", cl::desc("Run the cases in the emulator of this GPU (none)"), cl::value_desc("NAME"),
                          cl::cat(category));
cl::opt<bool> print("print", cl::desc("Print the specs only"), cl::cat(category));
cl::opt<bool> here("here", cl::desc("With --case: in this process, for a debugger"), cl::cat(category));
cl::opt<unsigned> failures("failures", cl::desc("Stop after so many failing cases (1)"), cl::init(1),
                           cl::cat(category));
cl::opt<double> shrinking("shrink", cl::desc("Seconds to make a failing case smaller (60)"), cl::init(60),
                          cl::cat(category));
cl::opt<std::string> folder("out", cl::desc("Folder for the spec and the inputs of a failing case"),
                            cl::init("attn-fuzz-failure"), cl::cat(category));

constexpr unsigned kTimeout = 180; // seconds of processor time for one case; ten times that where it waits

/// The failing case as small as it gets, as text, as files and as a command.
void report(uint64_t number, const Case &drawn, const Outcome &outcome) {
  outs() << "FAILED: case " << number << ", " << outcome.kind << ": " << outcome.message
         << "  again: attn-fuzz --seed=" << seed << " --case=" << number << (chip.empty() ? "" : " --chip=" + chip)
         << "\n";
  outs().flush();
  Case small = shrink(drawn, outcome, shrinking);
  std::string where = folder + "/" + std::to_string(seed) + "-" + std::to_string(number);
  Outcome again = checkApart(small, where);
  outs() << "made smaller (" << where << "/command runs it):\n" << render(small);
  const attn::ScheduleOverrides &s = small.schedule;
  outs() << "cpu " << small.cpu << ", schedule query_tile " << s.queryTile << " key_tile " << s.keyTile << " group "
         << s.group << " split " << s.split << " reindex " << s.reindex << "\n";
  for (const Variant &variant : small.variants) {
    outs() << "extents";
    for (int64_t value : variant.variables)
      outs() << ' ' << value;
    outs() << ", layout " << int(variant.layout) << ", guard " << int(variant.guard) << ", relation "
           << int(variant.relation) << ", factor " << variant.factor << ", poison " << variant.poisonEvery << ", huge "
           << (variant.hugeKeys ? "k" : "") << (variant.hugeQueries ? "q" : "") << " " << variant.huge << " every "
           << variant.hugeEvery << ", threads " << variant.threads << "\n";
  }
  outs() << again.kind << ": " << again.message << "\n";
  outs().flush();
}

} // namespace

namespace attn::fuzz {

Outcome checkApart(const Case &drawn, const std::string &folder) {
  int ends[2];
  if (pipe(ends) != 0)
    return {"pipe", strerror(errno)};
  outs().flush();
  pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    struct rlimit limit = {kTimeout, kTimeout};
    setrlimit(RLIMIT_CPU, &limit);
    alarm(10 * kTimeout);
    Outcome outcome = check(drawn, folder);
    std::string text = outcome.kind + '\n' + outcome.message + '\0';
    for (size_t at = 0; at < text.size();) {
      ssize_t wrote = write(ends[1], text.data() + at, text.size() - at);
      if (wrote <= 0)
        break;
      at += size_t(wrote);
    }
    _exit(0);
  }
  close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t got; (got = read(ends[0], buffer, sizeof(buffer))) > 0;)
    text.append(buffer, size_t(got));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) {
    int signal = WTERMSIG(status);
    bool late = signal == SIGALRM || signal == SIGXCPU || signal == SIGKILL; // the last two of the limit
    return {late ? "timeout" : "crash", std::string(strsignal(signal)) + "\n"};
  }
  if (text.empty() || text.back() != '\0')
    return {"crash", "ended with status " + std::to_string(WEXITSTATUS(status)) + "\n"};
  text.pop_back();
  size_t end = text.find('\n');
  return {text.substr(0, end), text.substr(end + 1)};
}

} // namespace attn::fuzz

int main(int argc, char **argv) {
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(argc, argv, "Random specs: compiled code against the reference\n");
  if (only >= 0) {
    Case drawn = drawCase(seed, uint64_t(only), chip);
    outs() << render(drawn);
    outs().flush();
    Outcome outcome = print ? Outcome() : here ? check(drawn) : checkApart(drawn);
    outs() << (outcome.kind.empty() ? "passed" : outcome.kind) << "\n" << outcome.message;
    return outcome.failed();
  }
  auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  uint64_t number = first, rejected = 0, failed = 0;
  for (; number - first < cases && failed < failures && std::chrono::steady_clock::now() < end; ++number) {
    Case drawn = drawCase(seed, number, chip);
    if (print) {
      outs() << "// case " << number << "\n" << render(drawn);
      continue;
    }
    Outcome outcome = checkApart(drawn);
    rejected += outcome.kind == "rejected";
    if (!outcome.failed())
      continue;
    ++failed;
    report(number, drawn, outcome);
  }
  outs() << number - first << " cases from seed " << seed << ": " << rejected << " keep nothing or need another CPU, "
         << failed << " failed\n";
  return failed > 0;
}
