// Prints how fast the streams of a recording decode, in million instructions
// per second, with time bounds, and how much processor time that is beside
// libipt's own block decoder over the same bytes, with nothing made of its
// blocks. Several rounds, each with all of it, because the host is shared.
//
//   build/bench/bench_decoder [--rounds N] INPUT...
//
// An INPUT is a bundle or, read as hardware's, a perf.data whose programs are
// on this host. Two orders of pulling: "time", slice after slice in order of
// time, as a follower of the threads does, and "thread", each thread to its
// end, so that most of what the other threads ran must wait.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/cpu_time.h"
#include "bench/libipt_blocks.h"
#include "bundle/bundle.h"
#include "decoder/bundle_trace.h"
#include "decoder/image_search.h"
#include "decoder/streams.h"

namespace clew::decoder {
namespace {

using bundle::Bundle;
using bundle::PerfData;

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

Result<StreamStats> Decode(const PerfTrace& trace, Order order) {
  if (order == Order::kLibipt) {
    return CountBlocksOfLibipt(trace);
  }
  CLEW_ASSIGN_OR_RETURN(streams, TraceStreams::Create(trace, {}));
  CLEW_RETURN_IF_ERROR(order == Order::kTime ? PullByTime(*streams)
                                             : PullThreads(*streams));
  return streams->stats();
}

Result<Measured> Measure(const PerfTrace& trace, Order order) {
  const double cpu_before = CpuSeconds();
  const auto start = std::chrono::steady_clock::now();
  CLEW_ASSIGN_OR_RETURN(stats, Decode(trace, order));
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

Result<std::unique_ptr<PerfTrace>> Load(const std::string& path) {
  if (std::filesystem::is_directory(path)) {
    CLEW_ASSIGN_OR_RETURN(bundle, Bundle::Open(path));
    return ReadTrace(bundle);
  }
  CLEW_ASSIGN_OR_RETURN(data, PerfData::Open(path));
  ImageSearch search;
  TraceConfig config;
  config.resolve_image = search.Resolver();
  return PerfTrace::Load(std::move(data), config);
}

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

Status Run(const std::string& path, int rounds) {
  CLEW_ASSIGN_OR_RETURN(trace, Load(path));
  fmt::print("{}\n{:>7} {:>13} {:>10} {:>5} {:>8} {:>8} {:>9} {:>9} {:>9}\n",
             path, "order", "instructions", "blocks", "gaps", "wall s", "cpu s",
             "M insn/s", "per cpu s", "waiting");
  std::map<Order, std::vector<double>> ratios;
  for (int round = 0; round < rounds; ++round) {
    std::map<Order, double> seconds;
    for (const auto& [order, name] : kOrders) {
      CLEW_ASSIGN_OR_RETURN(measured, Measure(*trace, order));
      PrintRow(name, measured);
      seconds[order] = measured.cpu_seconds;
    }
    for (const auto& [order, name] : kOrders) {
      ratios[order].push_back(seconds[order] / seconds[Order::kLibipt]);
    }
  }
  fmt::print(
      "cpu time beside libipt's, median: by time {:.2f}, by thread {:.2f}\n",
      Median(ratios[Order::kTime]), Median(ratios[Order::kThread]));
  return {};
}

Status RunAll(std::vector<std::string> arguments) {
  int rounds = 3;
  if (arguments.size() > 2 && arguments[0] == "--rounds") {
    rounds = std::max(1, std::atoi(arguments[1].c_str()));
    arguments.erase(arguments.begin(), arguments.begin() + 2);
  }
  for (const std::string& path : arguments) {
    CLEW_RETURN_IF_ERROR(Run(path, rounds));
  }
  return {};
}

}  // namespace
}  // namespace clew::decoder

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: bench_decoder [--rounds N] INPUT...\n");
    return 2;
  }
  const clew::Status status = clew::decoder::RunAll({argv + 1, argv + argc});
  if (!status) {
    fmt::print(stderr, "bench_decoder: {}\n", status.error().message);
    return clew::ExitCodeOf(status.error().code);
  }
  return 0;
}
