// Prints how fast the streams of a bundle decode, in million instructions per
// second, with time bounds; several rounds, because the host is shared.
//
//   build/bench/bench_decoder BUNDLE [ROUNDS]
//
// Two orders of pulling: "time", slice after slice in order of time, as a
// follower of the threads does, and "thread", each thread to its end, so that
// most of what the other threads ran must wait. Wall time and, because others
// use the host too, CPU time. "libipt" is libipt's block decoder over the same
// bytes, with nothing made of its blocks.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "bench/cpu_time.h"
#include "decoder/bundle_reader.h"
#include "decoder/streams.h"

namespace clew::decoder {
namespace {

enum class Order : uint8_t { kTime, kThread, kLibipt };
constexpr std::pair<Order, const char*> kOrders[] = {
    {Order::kTime, "time"},
    {Order::kThread, "thread"},
    {Order::kLibipt, "libipt"}};

struct Measured {
  double wall_seconds = 0;
  double cpu_seconds = 0;
  StreamStats stats;
};

// Slices in the order in which they begin.
std::vector<Slice> SlicesByTime(const TraceStreams& streams) {
  std::vector<Slice> slices = streams.slices();
  std::stable_sort(
      slices.begin(), slices.end(),
      [](const Slice& a, const Slice& b) { return a.time.lo < b.time.lo; });
  return slices;
}

TscTicks LatestTime(const StreamItem& item) {
  const auto* block = std::get_if<StreamBlock>(&item);
  return block != nullptr ? block->time.hi : std::get<Gap>(item).time.hi;
}

Status PullThreads(TraceStreams& streams) {
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

// Stops at the first block that may be the slice's last one: to ask for more
// might decode up to the thread's next slice.
Status PullByTime(TraceStreams& streams) {
  std::map<Tid, TscTicks> reached;
  for (const Slice& slice : SlicesByTime(streams)) {
    TscTicks& latest = reached[slice.thread];
    while (latest < slice.time.hi) {
      CLEW_ASSIGN_OR_RETURN(item, streams.Next(slice.thread));
      if (!item) {
        break;
      }
      latest = LatestTime(*item);
    }
  }
  return PullThreads(streams);
}

// The blocks of one piece, up to the first error.
void CountBlocks(const AuxPiece& piece, CodeImage& image, StreamStats& stats) {
  FlowReader flow(piece.bytes, image, {});
  if (!flow.SyncAt(0)) {
    return;
  }
  FlowStep step;
  do {
    flow.Next(step);
    stats.blocks += step.kind == FlowKind::kBlock ? 1 : 0;
    stats.instructions += step.insn_count;
  } while (step.kind != FlowKind::kError && step.kind != FlowKind::kEnd);
  stats.gaps += step.kind == FlowKind::kError ? 1 : 0;
}

Result<StreamStats> DecodeByLibipt(const Trace& trace) {
  StreamStats stats;
  CodeCache cache;
  for (const CoreTrace& core : trace.cores()) {
    CodeImage image(cache);
    CodeMap code = trace.spaces().MapOf(
        trace.spaces().At(trace.slices().front().process, TscTicks(0)));
    code.MapInitial(image);
    for (const AuxPiece& piece : core.pieces) {
      CountBlocks(piece, image, stats);
    }
  }
  return stats;
}

Result<StreamStats> Decode(const Trace& trace, Order order) {
  if (order == Order::kLibipt) {
    return DecodeByLibipt(trace);
  }
  CLEW_ASSIGN_OR_RETURN(streams, TraceStreams::Create(trace, {}));
  CLEW_RETURN_IF_ERROR(order == Order::kTime ? PullByTime(*streams)
                                             : PullThreads(*streams));
  return streams->stats();
}

Result<Measured> Measure(const Bundle& bundle, Order order) {
  const double cpu_before = CpuSeconds();
  const auto start = std::chrono::steady_clock::now();
  CLEW_ASSIGN_OR_RETURN(trace, bundle.ReadTrace());
  CLEW_ASSIGN_OR_RETURN(stats, Decode(*trace, order));
  const std::chrono::duration<double> wall =
      std::chrono::steady_clock::now() - start;
  return Measured{.wall_seconds = wall.count(),
                  .cpu_seconds = CpuSeconds() - cpu_before,
                  .stats = stats};
}

void PrintRow(const char* order, const Measured& measured) {
  const StreamStats& stats = measured.stats;
  const double millions = static_cast<double>(stats.instructions) / 1e6;
  fmt::print(
      "{:>7} {:>13} {:>10} {:>5} {:>8.3f} {:>8.3f} {:>9.1f} {:>9.1f} {:>9}\n",
      order, stats.instructions, stats.blocks, stats.gaps,
      measured.wall_seconds, measured.cpu_seconds,
      millions / measured.wall_seconds, millions / measured.cpu_seconds,
      stats.buffered_items_peak);
}

Status Run(const std::string& path, int rounds) {
  CLEW_ASSIGN_OR_RETURN(bundle, Bundle::Open(path));
  fmt::print("{:>7} {:>13} {:>10} {:>5} {:>8} {:>8} {:>9} {:>9} {:>9}\n",
             "order", "instructions", "blocks", "gaps", "wall s", "cpu s",
             "M insn/s", "per cpu s", "waiting");
  for (const auto& [order, name] : kOrders) {
    for (int round = 0; round < rounds; ++round) {
      CLEW_ASSIGN_OR_RETURN(measured, Measure(bundle, order));
      PrintRow(name, measured);
    }
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
