// Speed of following a recording on the machine, and of writing it down as
// constraints on the shadow machine.
//
//   follow BUNDLE [--rounds N]
//
// Prints instructions, seconds and M insn/s, the fastest of N rounds: pulling
// the streams alone, following the guess (decoding included), and the symbolic
// trace over the shared words that the guess met.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_set>

#include "follower/bundle/bundle_recording.h"
#include "follower/recording.h"
#include "solver/search/guess_run.h"
#include "solver/search/word_table.h"
#include "symbolic/trace_builder.h"

namespace clew {
namespace {

using Clock = std::chrono::steady_clock;

// Seconds of the fastest round; `work` returns how many instructions it did.
void Row(const char* name, int rounds,
         const std::function<Result<uint64_t>()>& work) {
  double best = 1e9;
  uint64_t insns = 0;
  for (int i = 0; i < rounds; ++i) {
    const auto start = Clock::now();
    const auto done = work();
    if (!done) {
      fmt::print("{:<28} {}\n", name, done.error().message);
      return;
    }
    insns = *done;
    best = std::min(
        best, std::chrono::duration<double>(Clock::now() - start).count());
  }
  fmt::print("{:<28} {:>12} insn {:>9.3f} s {:>9.1f} M insn/s\n", name, insns,
             best, static_cast<double>(insns) / best / 1e6);
}

Result<uint64_t> Pull(const follower::Recording& recording) {
  CLEW_ASSIGN_OR_RETURN(streams, recording.open_streams());
  uint64_t insns = 0;
  for (const Tid thread : streams->threads()) {
    while (true) {
      CLEW_ASSIGN_OR_RETURN(item, streams->Next(thread));
      if (!item) {
        break;
      }
      if (const auto* block = std::get_if<StreamBlock>(&*item)) {
        insns += block->insn_count;
      }
    }
  }
  return insns;
}

Result<uint64_t> Follow(const follower::Recording& recording,
                        solver::WordTable* words) {
  CLEW_ASSIGN_OR_RETURN(session, follower::OpenedRecording::Open(recording));
  solver::GuessRunner runner(recording.failure, words, {}, nullptr);
  CLEW_ASSIGN_OR_RETURN(
      outcome, runner.Run(solver::FirstPoint(session->start().Forced(),
                                             recording.clock_slack_ticks, {})));
  return outcome.retired_total;
}

Result<uint64_t> Trace(const follower::Recording& recording,
                       const std::unordered_set<uint64_t>& words) {
  CLEW_ASSIGN_OR_RETURN(session, follower::OpenedRecording::Open(recording));
  constraints::ExprPool pool;
  CLEW_ASSIGN_OR_RETURN(
      built,
      symbolic::BuildTrace(session->start(), words, pool,
                           {.accesses_max = 10'000'000,
                            .clock_slack_ticks = recording.clock_slack_ticks}));
  return built.insns_run;
}

int Main(const std::string& bundle_path, int rounds) {
  const auto bundle = follower::OpenRecording(bundle_path);
  if (!bundle) {
    fmt::print(stderr, "follow: {}\n", bundle.error().message);
    return ExitCodeOf(bundle.error().code);
  }
  const follower::Recording& recording = (*bundle)->recording;
  Row("streams, no machine", rounds, [&] { return Pull(recording); });
  Row("followed", rounds, [&] { return Follow(recording, nullptr); });
  solver::WordTable words(64, recording.clock_slack_ticks);
  Row("followed, accesses learned", 2,
      [&] { return Follow(recording, &words); });
  const auto contested = words.ContestedWords();
  Row("symbolic trace", rounds, [&] { return Trace(recording, contested); });
  fmt::print("{} contested instructions on {} words\n", words.contested_count(),
             contested.size());
  return kExitOk;
}

}  // namespace
}  // namespace clew

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: follow BUNDLE [--rounds N]\n");
    return clew::kExitUsage;
  }
  const bool has_rounds = argc == 4 && std::string_view(argv[2]) == "--rounds";
  return clew::Main(argv[1], has_rounds ? std::atoi(argv[3]) : 3);
}
