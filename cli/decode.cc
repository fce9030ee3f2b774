#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bundle/bundle.h"
#include "bundle/perf_data/pt_stream.h"
#include "cli/report.h"
#include "cli/subcommands.h"
#include "decoder/bundle_trace.h"
#include "decoder/image_search.h"
#include "decoder/pt/packet.h"
#include "decoder/streams.h"
#include "decoder/thread_passes.h"

namespace clew::cli {
namespace {

using bundle::Bundle;
using bundle::IsStreamOfThread;
using bundle::PerfData;
using bundle::StreamName;
using bundle::ThreadOfStream;
using decoder::AuxPiece;
using decoder::CoreTrace;
using decoder::Packet;
using decoder::PerfTrace;
using decoder::ThreadPasses;
using decoder::TraceStreams;

// Blocks that wait while other threads are printed: 16 to 48 bytes each.
constexpr uint64_t kWaitingBlocksMax = uint64_t{4} << 20;

constexpr const char* kDecodeFooter =
    R"(Times are TSC ticks: [lo,hi] contains the retirement of the whole block.
A gap is a counted hole in the trace; nothing is left out silently.

Exit codes:
  0  decoded, with or without gaps
  4  the bundle breaks its format

Examples:
  clew decode fail.clew                              every thread's instructions
  clew decode fail.clew --thread 4711 --from 1000 --count 20
  clew decode fail.clew --as blocks --core 0
  clew decode fail.clew --as packets --core 0 --count 50
  clew decode fail.clew --as slices                  when each thread ran where
  clew decode fail.clew --as none                    count, and find gaps
  clew decode perf.data --as blocks --json           of plain Linux perf
)";

struct DecodeOptions {
  std::string input;
  std::string as = "instructions";
  std::optional<int32_t> thread;
  std::optional<uint32_t> core;
  uint64_t from = 0;
  uint64_t count = UINT64_MAX;
  bool json = false;
};

// Prints items as lines, or as the elements of one JSON document. Items before
// `from` and after `count` of them are counted, not printed.
class Output {
 public:
  explicit Output(const DecodeOptions& options) : options_(options) {
    if (options_.json) {
      fmt::print("{{\"items\": [");
    }
  }
  // Begins to count anew.
  void Restart() { index_ = 0; }
  // Whether the next item is to be printed; counts it.
  bool Wants() {
    const uint64_t index = index_++;
    return index >= options_.from && index - options_.from < options_.count;
  }
  bool done() const {
    return index_ >= options_.from && index_ - options_.from >= options_.count;
  }
  bool json() const { return options_.json; }
  void Line(const std::string& line) { fmt::print("{}\n", line); }
  void Element(const Json& element) {
    fmt::print("{}\n{}", first_ ? "" : ",",
               element.dump(-1, ' ', false, Json::error_handler_t::replace));
    first_ = false;
  }
  void Finish(const Json& summary, const std::string& text) {
    if (options_.json) {
      fmt::print("\n], \"summary\": {}}}\n", summary.dump());
    } else {
      fmt::print("# {}\n", text);
    }
  }

 private:
  const DecodeOptions& options_;
  uint64_t index_ = 0;
  bool first_ = true;
};

void WarnOfUnverified(const decoder::ImageSearch& search) {
  const size_t unverified = search.CountUnverified();
  if (unverified > 0) {
    Warn(
        fmt::format("{} code files were taken by path alone, as the recording "
                    "has no build-ids of them: another build decodes wrongly",
                    unverified));
  }
}

void WarnOfUnknownCpu(const PerfTrace& trace) {
  if (trace.data().features().cpu_id.empty()) {
    Warn(
        "the recording does not name its CPU, and wrong errata make gaps: "
        "'clew import --cpu' gives it one");
  }
}

Result<std::unique_ptr<PerfTrace>> OpenTrace(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode)) {
    CLEW_ASSIGN_OR_RETURN(data, PerfData::Open(path));
    decoder::ImageSearch search;
    decoder::TraceConfig config;
    config.resolve_image = search.Resolver();
    CLEW_ASSIGN_OR_RETURN(trace, PerfTrace::Load(std::move(data), config));
    WarnOfUnverified(search);
    WarnOfUnknownCpu(*trace);
    return std::move(trace);
  }
  CLEW_ASSIGN_OR_RETURN(bundle, Bundle::Open(path));
  return decoder::ReadTrace(bundle);
}

std::string HexAddr(TraceeAddr addr) { return fmt::format("{:#x}", addr); }

const char* CauseName(GapCause cause) {
  switch (cause) {
    case GapCause::kOverflow:
      return "overflow";
    case GapCause::kAuxLost:
      return "aux-lost";
    case GapCause::kCodeMissing:
      return "code-missing";
    case GapCause::kBadPacket:
      return "bad-packet";
    case GapCause::kLostRecords:
      return "lost-records";
  }
  return "unknown";
}

// Of a thread's own stream there is no core.
Json JsonCore(CoreId core) {
  return IsStreamOfThread(core) ? Json() : Json(core.as_int());
}

Json JsonStream(CoreId core) {
  Json json = {{"core", JsonCore(core)}};
  if (IsStreamOfThread(core)) {
    json["thread"] = ThreadOfStream(core).as_int();
  }
  return json;
}

// "thread 4711 core 3"; of a thread's own stream the thread alone.
std::string Where(const Slice& slice) {
  const std::string thread = fmt::format("thread {}", slice.thread);
  return IsStreamOfThread(slice.core)
             ? thread
             : fmt::format("{} core {}", thread, slice.core);
}

// Packets.

void PrintPacket(Output& out, CoreId core, uint64_t aux_offset,
                 const Packet& packet) {
  if (!out.Wants()) {
    return;
  }
  const std::string text = decoder::PacketText(packet);
  if (out.json()) {
    Json element = JsonStream(core);
    element["offset"] = aux_offset;
    element["packet"] = text;
    out.Element(element);
  } else {
    out.Line(fmt::format("{} {:#010x} {}", StreamName(core), aux_offset, text));
  }
}

void PrintBadBytes(Output& out, CoreId core, uint64_t offset, uint64_t bytes,
                   const char* why) {
  if (out.json()) {
    Json element = JsonStream(core);
    element["offset"] = offset;
    element["bad_bytes"] = bytes;
    element["why"] = why;
    out.Element(element);
  } else {
    out.Line(fmt::format("{} {:#010x} {} bytes are no packets: {}",
                         StreamName(core), offset, bytes, why));
  }
}

// Returns how many bytes do not belong to a packet.
uint64_t PrintPiece(Output& out, CoreId core, const AuxPiece& piece,
                    uint64_t& packets) {
  decoder::PacketReader reader(piece.bytes);
  uint64_t bad_bytes = 0;
  uint64_t bad_from = 0;
  const char* why = "no PSB before";
  while (reader.SyncAt(bad_from)) {
    if (reader.offset() > bad_from) {
      bad_bytes += reader.offset() - bad_from;
      PrintBadBytes(out, core, piece.aux_offset + bad_from,
                    reader.offset() - bad_from, why);
    }
    Packet packet;
    while (!out.done() && reader.Next(packet)) {
      ++packets;
      PrintPacket(out, core, piece.aux_offset + packet.offset, packet);
    }
    bad_from = reader.offset();
    if (out.done() || bad_from == piece.bytes.size()) {
      return bad_bytes;
    }
    why = reader.error() != nullptr ? reader.error() : "cut off";
    bad_from += 1;
  }
  if (bad_from < piece.bytes.size()) {
    bad_bytes += piece.bytes.size() - bad_from;
    PrintBadBytes(out, core, piece.aux_offset + bad_from,
                  piece.bytes.size() - bad_from, why);
  }
  return bad_bytes;
}

Status PrintPackets(const PerfTrace& trace, const DecodeOptions& options) {
  Output out(options);
  uint64_t packets = 0;
  uint64_t bad_bytes = 0;
  bool found = false;
  for (const CoreTrace& core : trace.cores()) {
    if (options.core && core.core != CoreId(*options.core)) {
      continue;
    }
    found = true;
    out.Restart();
    for (const AuxPiece& piece : core.pieces) {
      bad_bytes += PrintPiece(out, core.core, piece, packets);
    }
  }
  if (!found && options.core) {
    return InvalidArgument("{}: no PT of core {} in it", options.input,
                           *options.core);
  }
  out.Finish(
      {{"packets", packets}, {"bad_bytes", bad_bytes}},
      fmt::format("{} packets, {} bytes that are none", packets, bad_bytes));
  return {};
}

// Blocks and instructions.

class ItemPrinter {
 public:
  ItemPrinter(const PerfTrace& trace, const DecodeOptions& options)
      : trace_(trace), options_(options), out_(options) {}

  void Restart() { out_.Restart(); }
  bool done() const { return out_.done(); }

  // `item` comes from `streams`.
  Status Print(TraceStreams& streams, const StreamItem& item) {
    if (const auto* gap = std::get_if<Gap>(&item)) {
      PrintGap(*gap);
      return {};
    }
    const auto& block = std::get<StreamBlock>(item);
    if (options_.as == "blocks") {
      PrintBlock(block);
      return {};
    }
    if (options_.as == "instructions") {
      return PrintInstructions(streams, block);
    }
    return {};
  }

  void Finish(const decoder::StreamStats& stats, uint64_t passes) {
    Json summary = {
        {"instructions", stats.instructions},
        {"blocks", stats.blocks},
        {"gaps", stats.gaps},
        {"gap_bytes", stats.gap_bytes},
        {"instructions_without_thread", stats.instructions_without_thread},
        {"tsc_backwards", stats.tsc_backwards},
        {"time_contradictions", stats.time_contradictions},
        {"passes", passes}};
    out_.Finish(
        summary,
        fmt::format("{} instructions in {} blocks decoded, {} gaps ({} "
                    "bytes), {} instructions of no known thread",
                    stats.instructions, stats.blocks, stats.gaps,
                    stats.gap_bytes, stats.instructions_without_thread));
  }

 private:
  std::string WhereIn(uint32_t slice) const {
    return Where(trace_.slices()[slice]);
  }

  Json Base(uint32_t slice, const char* kind, TscInterval time) const {
    const Slice& of = trace_.slices()[slice];
    return {{"kind", kind},
            {"thread", of.thread.as_int()},
            {"core", JsonCore(of.core)},
            {"slice", slice},
            {"lo", time.lo.as_int()},
            {"hi", time.hi.as_int()}};
  }

  void PrintGap(const Gap& gap) {
    if (out_.json()) {
      Json element = Base(gap.slice, "gap", gap.time);
      element["cause"] = CauseName(gap.cause);
      element["offset"] = gap.aux_offset;
      element["bytes"] = gap.bytes;
      element["ip"] = HexAddr(gap.ip);
      element["detail"] = gap.detail;
      out_.Element(element);
    } else {
      out_.Line(fmt::format("{} gap {} [{},{}] at {:#x}: {}",
                            WhereIn(gap.slice), CauseName(gap.cause),
                            gap.time.lo, gap.time.hi, gap.aux_offset,
                            gap.detail));
    }
  }

  void PrintBlock(const StreamBlock& block) {
    if (!out_.Wants()) {
      return;
    }
    if (out_.json()) {
      Json element = Base(block.slice, "block", block.time);
      element["ip"] = HexAddr(block.ip);
      element["instructions"] = block.insn_count;
      element["interrupted"] = block.interrupted;
      out_.Element(element);
    } else {
      out_.Line(fmt::format("{} {:#014x} {:4} insn [{},{}]{}",
                            WhereIn(block.slice), block.ip, block.insn_count,
                            block.time.lo, block.time.hi,
                            block.interrupted ? " interrupted" : ""));
    }
  }

  Status PrintInstructions(TraceStreams& streams, const StreamBlock& block) {
    return streams.ForEachInstruction(block,
                                      [&](const decoder::WalkedInsn& insn) {
                                        if (out_.Wants()) {
                                          PrintInstruction(block, insn);
                                        }
                                      });
  }

  void PrintInstruction(const StreamBlock& block,
                        const decoder::WalkedInsn& insn) {
    std::string bytes;
    for (const uint8_t byte : insn.bytes) {
      bytes += fmt::format("{:02x}", byte);
    }
    if (out_.json()) {
      Json element = Base(block.slice, "instruction", block.time);
      element["ip"] = HexAddr(insn.ip);
      element["bytes"] = bytes;
      out_.Element(element);
    } else {
      out_.Line(
          fmt::format("{} {:#014x} {}", WhereIn(block.slice), insn.ip, bytes));
    }
  }

  const PerfTrace& trace_;
  const DecodeOptions& options_;
  Output out_;
};

Status PrintThread(TraceStreams& streams, Tid thread, ItemPrinter& printer) {
  printer.Restart();
  while (!printer.done()) {
    CLEW_ASSIGN_OR_RETURN(item, streams.Next(thread));
    if (!item) {
      break;
    }
    CLEW_RETURN_IF_ERROR(printer.Print(streams, *item));
  }
  return {};
}

Status PrintCore(TraceStreams& streams, CoreId core, ItemPrinter& printer) {
  printer.Restart();
  while (!printer.done()) {
    CLEW_ASSIGN_OR_RETURN(item, streams.NextOnCore(core));
    if (!item) {
      break;
    }
    CLEW_RETURN_IF_ERROR(printer.Print(streams, *item));
  }
  return {};
}

// One after another, decoding as often as it takes to hold only few blocks.
Status PrintEveryThread(const PerfTrace& trace, ItemPrinter& printer) {
  CLEW_ASSIGN_OR_RETURN(
      passes,
      ThreadPasses::Create(trace, {.buffered_items_max = kWaitingBlocksMax}));
  for (const Tid thread : passes.threads()) {
    CLEW_ASSIGN_OR_RETURN(streams, passes.For(thread));
    CLEW_RETURN_IF_ERROR(PrintThread(*streams, thread, printer));
  }
  printer.Finish(passes.stats(), passes.passes());
  return {};
}

Status PrintItems(const PerfTrace& trace, const DecodeOptions& options) {
  ItemPrinter printer(trace, options);
  if (!options.core && !options.thread) {
    return PrintEveryThread(trace, printer);
  }
  decoder::StreamOptions chosen = {.buffered_items_max = kWaitingBlocksMax};
  if (options.thread) {
    chosen.threads = {Tid(*options.thread)};
  }
  CLEW_ASSIGN_OR_RETURN(streams, TraceStreams::Create(trace, chosen));
  if (options.core) {
    CLEW_RETURN_IF_ERROR(PrintCore(*streams, CoreId(*options.core), printer));
  } else {
    CLEW_RETURN_IF_ERROR(PrintThread(*streams, Tid(*options.thread), printer));
  }
  printer.Finish(streams->stats(), 1);
  return {};
}

// Slices.

// When a thread was on a core: its time line.
void PrintSlice(Output& out, const Slice& slice) {
  if (!out.Wants()) {
    return;
  }
  if (out.json()) {
    out.Element({{"kind", "slice"},
                 {"thread", slice.thread.as_int()},
                 {"core", JsonCore(slice.core)},
                 {"lo", slice.time.lo.as_int()},
                 {"hi", slice.time.hi.as_int()}});
  } else {
    out.Line(
        fmt::format("{} [{},{}]", Where(slice), slice.time.lo, slice.time.hi));
  }
}

// Thread by thread, each in order of time; or those of a core.
Status PrintSlices(const PerfTrace& trace, const DecodeOptions& options) {
  std::map<Tid, std::vector<const Slice*>> by_thread;
  for (const Slice& slice : trace.slices()) {
    if ((!options.thread || slice.thread == Tid(*options.thread)) &&
        (!options.core || slice.core == CoreId(*options.core))) {
      by_thread[options.core ? Tid(0) : slice.thread].push_back(&slice);
    }
  }
  Output out(options);
  uint64_t count = 0;
  for (auto& [thread, slices] : by_thread) {
    std::ranges::stable_sort(slices, {}, [](const Slice* slice) {
      return std::pair(slice->time.lo, slice->on_core);
    });
    out.Restart();
    for (const Slice* slice : slices) {
      PrintSlice(out, *slice);
    }
    count += slices.size();
  }
  out.Finish({{"slices", count}, {"lists", by_thread.size()}},
             fmt::format("{} slices in {} lists", count, by_thread.size()));
  return {};
}

Status RunDecode(const DecodeOptions& options) {
  CLEW_ASSIGN_OR_RETURN(trace, OpenTrace(options.input));
  if (options.as == "packets") {
    return PrintPackets(*trace, options);
  }
  if (options.as == "slices") {
    return PrintSlices(*trace, options);
  }
  if (!trace->has_pt()) {
    return Unsupported(
        "{}: there is no Intel PT in it, so no instructions; --as slices shows "
        "when each thread ran where",
        options.input);
  }
  return PrintItems(*trace, options);
}

}  // namespace

void AddDecode(Command& app, int& exit_code) {
  auto options = std::make_shared<DecodeOptions>();
  Command* command =
      app.add_subcommand("decode", "print packets, blocks or instructions");
  command
      ->add_option("input", options->input,
                   "bundle folder, or a perf.data file with intel_pt")
      ->required();
  command
      ->add_option("--as", options->as,
                   "what to print: instructions (default), blocks, packets, "
                   "slices, none")
      ->check(
          IsMember({"instructions", "blocks", "packets", "slices", "none"}));
  auto* thread =
      command->add_option("--thread", options->thread, "only this thread");
  command->add_option("--core", options->core, "only this core, as it ran")
      ->excludes(thread);
  command->add_option("--from", options->from,
                      "first item to print of each thread or core, from 0");
  command->add_option("--count", options->count,
                      "most items to print of each thread or core");
  command->add_flag("--json", options->json, "one JSON document");
  command->footer(kDecodeFooter);
  command->callback(
      [=, &exit_code] { exit_code = ReportStatus(RunDecode(*options)); });
}

}  // namespace clew::cli
