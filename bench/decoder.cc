// Prints how fast the streams of a bundle decode, in million instructions per
// second, with time bounds; several rounds, because the host is shared.
//
//   build/bench/bench_decoder BUNDLE [ROUNDS]
//
// Threads are pulled one after another in order of time, slice by slice, as the
// follower does.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "decoder/bundle_reader.h"
#include "decoder/streams.h"

namespace clew::decoder {
namespace {

// The threads in the order in which their slices begin.
std::vector<Tid> ThreadsByTime(const TraceStreams& streams) {
  std::vector<Slice> slices = streams.slices();
  std::stable_sort(
      slices.begin(), slices.end(),
      [](const Slice& a, const Slice& b) { return a.time.lo < b.time.lo; });
  std::vector<Tid> order;
  for (const Slice& slice : slices) {
    order.push_back(slice.thread);
  }
  return order;
}

// Pulls a few blocks of each thread in turn, then what is left.
Status PullAll(TraceStreams& streams) {
  constexpr int kBlocksPerTurn = 64;
  for (const Tid tid : ThreadsByTime(streams)) {
    for (int i = 0; i < kBlocksPerTurn; ++i) {
      CLEW_ASSIGN_OR_RETURN(item, streams.Next(tid));
      if (!item) {
        break;
      }
    }
  }
  for (const Tid tid : streams.threads()) {
    while (true) {
      CLEW_ASSIGN_OR_RETURN(item, streams.Next(tid));
      if (!item) {
        break;
      }
    }
  }
  return {};
}

Status Run(const std::string& path, int rounds) {
  CLEW_ASSIGN_OR_RETURN(bundle, Bundle::Open(path));
  fmt::print("{:>6} {:>14} {:>12} {:>6} {:>9} {:>10} {:>10}\n", "round",
             "instructions", "blocks", "gaps", "seconds", "M insn/s",
             "waiting");
  for (int round = 0; round < rounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    CLEW_ASSIGN_OR_RETURN(trace, bundle.ReadTrace());
    CLEW_ASSIGN_OR_RETURN(streams, TraceStreams::Create(*trace, {}));
    CLEW_RETURN_IF_ERROR(PullAll(*streams));
    const std::chrono::duration<double> seconds =
        std::chrono::steady_clock::now() - start;
    const StreamStats stats = streams->stats();
    fmt::print("{:>6} {:>14} {:>12} {:>6} {:>9.3f} {:>10.1f} {:>10}\n", round,
               stats.instructions, stats.blocks, stats.gaps, seconds.count(),
               static_cast<double>(stats.instructions) / 1e6 / seconds.count(),
               stats.buffered_items_peak);
  }
  return {};
}

}  // namespace
}  // namespace clew::decoder

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: bench_decoder BUNDLE [ROUNDS]\n");
    return 2;
  }
  const clew::Status status =
      clew::decoder::Run(argv[1], argc > 2 ? std::atoi(argv[2]) : 3);
  if (!status) {
    fmt::print(stderr, "bench_decoder: {}\n", status.error().message);
    return clew::ExitCodeOf(status.error().code);
  }
  return 0;
}
