#include "cli/bug_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <variant>

#include "cli/code_names.h"
#include "cli/verdict_text.h"
#include "common/linux/syscall_table.h"
#include "common/text/path_names.h"
#include "decoder/streams.h"
#include "machine/decode.h"

namespace clew::cli {
namespace {

using decoder::TraceStreams;
using decoder::WalkedInsn;
using follower::BundleRecording;
using follower::Contradiction;

constexpr int kReportFormat = 1;

std::string Hex(uint64_t value) { return fmt::format("{:#x}", value); }

bool IsPointer(const SyscallRow& row, size_t argument) {
  const auto points = [argument](const Pointee& pointee) {
    return pointee.extent != Extent::kNone && pointee.arg == argument;
  };
  return std::ranges::any_of(row.writes, points) ||
         std::ranges::any_of(row.reads, points);
}

Json Arguments(const SyscallInput& call) {
  Json arguments = Json::array();
  const SyscallRow* const row = FindSyscall(call.number);
  for (size_t i = 0; row != nullptr && i < kSyscallArguments; ++i) {
    if (row->arguments[i] == '\0' || row->arguments[i] == '-') {
      break;
    }
    arguments.push_back(IsPointer(*row, i)
                            ? std::string("pointer")
                            : Hex(SyscallArgument(*row, call.args, i)));
  }
  return arguments;
}

Json Written(std::span<const MemoryWrite> writes) {
  Json written = Json::array();
  for (const MemoryWrite& write : writes) {
    written.push_back(
        {{"addr", Hex(write.addr.as_int())}, {"bytes", write.bytes.size()}});
  }
  return written;
}

struct InputToJson {
  CodeNames& places;

  Json operator()(const SyscallInput& call) const {
    return {{"call", SyscallName(call.number)},
            {"arguments", Arguments(call)},
            {"result", call.result ? Json(*call.result) : Json()},
            {"written", Written(call.writes)}};
  }
  Json operator()(const SignalInput& signal) const {
    return {{"signal", signal.number},
            {"interrupted", places.NameOf(signal.interrupted_ip)},
            {"handler", places.NameOf(signal.handler_ip)},
            {"written", Written(signal.writes)}};
  }
  Json operator()(const InsnInput& insn) const {
    return {{"instruction", places.NameOf(insn.ip)}};
  }
  Json operator()(const UnknownInput& unknown) const {
    return {{"unknown", unknown.count}};
  }
};

// What came in to the thread before the contradiction, and the first that had
// not: a call that contradicts has not taken its record yet.
Result<Json> LastInputs(const BundleRecording& recording,
                        const Contradiction& at, CodeNames& places) {
  CLEW_ASSIGN_OR_RETURN(inputs, recording.recording.open_inputs());
  std::deque<InputRecord> last;
  for (uint64_t i = 0; i <= at.inputs; ++i) {
    CLEW_ASSIGN_OR_RETURN(record, inputs->Next(at.tid));
    if (!record) {
      break;
    }
    last.push_back(*std::move(record));
    if (last.size() > kReportedInputsMax) {
      last.pop_front();
    }
  }
  Json json = Json::array();
  for (const InputRecord& record : last) {
    json.push_back(std::visit(InputToJson{places}, record));
  }
  return json;
}

// The thread's blocks up to the one that holds the contradiction.
Result<std::deque<StreamBlock>> LastBlocks(TraceStreams& streams,
                                           const Contradiction& at) {
  std::deque<StreamBlock> last;
  uint64_t insns = 0;
  while (insns <= at.insn_index) {
    CLEW_ASSIGN_OR_RETURN(item, streams.Next(at.tid));
    if (!item || !std::holds_alternative<StreamBlock>(*item)) {
      break;
    }
    last.push_back(std::get<StreamBlock>(*item));
    insns += last.back().insn_count;
    if (last.size() > kReportedBlocksMax) {
      last.pop_front();
    }
  }
  return last;
}

// The machine went another way at the end of the block before the place, or
// did something else in the block that was recorded there: those two.
Result<Json> Instructions(TraceStreams& streams,
                          const std::deque<StreamBlock>& blocks) {
  Json json = Json::array();
  machine::Decoder decoder;
  for (size_t i = blocks.size() - std::min<size_t>(blocks.size(), 2);
       i < blocks.size(); ++i) {
    CLEW_RETURN_IF_ERROR(
        streams.ForEachInstruction(blocks[i], [&](const WalkedInsn& insn) {
          json.push_back(
              decoder.Describe(insn.ip.as_int(), std::as_bytes(insn.bytes)));
        }));
  }
  return json;
}

Status AddCode(const BundleRecording& recording, const Contradiction& at,
               CodeNames& places, Json& report) {
  decoder::StreamOptions options;
  options.threads = {at.tid};
  CLEW_ASSIGN_OR_RETURN(streams,
                        TraceStreams::Create(*recording.trace, options));
  CLEW_ASSIGN_OR_RETURN(blocks, LastBlocks(*streams, at));
  Json json = Json::array();
  for (const StreamBlock& block : blocks) {
    json.push_back({{"at", Hex(block.ip.as_int())},
                    {"code", places.NameOf(block.ip)},
                    {"instructions", block.insn_count},
                    {"call", block.is_syscall}});
  }
  report["blocks"] = std::move(json);
  CLEW_ASSIGN_OR_RETURN(insns, Instructions(*streams, blocks));
  report["instructions"] = std::move(insns);
  return {};
}

std::string ProtectionOf(uint32_t prot) {
  return fmt::format("{}{}{}", (prot & kProtRead) != 0 ? 'r' : '-',
                     (prot & kProtWrite) != 0 ? 'w' : '-',
                     (prot & kProtExec) != 0 ? 'x' : '-');
}

Json Mappings(const StartState& start) {
  Json json = Json::array();
  for (const StartSegment& segment : start.segments) {
    json.push_back({{"addr", Hex(segment.addr.as_int())},
                    {"bytes", segment.size_bytes},
                    {"protection", ProtectionOf(segment.prot)},
                    {"name", BaseName(segment.name)}});
  }
  return json;
}

Json RecordedBy(const bundle::Manifest& manifest) {
  return {{"producer", manifest.producer},
          {"intel", manifest.cpu.is_intel},
          {"family", manifest.cpu.family},
          {"model", manifest.cpu.model},
          {"stepping", manifest.cpu.stepping},
          {"cores", manifest.core_count},
          {"seed", manifest.seed},
          {"quantum_insns", manifest.quantum_insns}};
}

}  // namespace

Result<Json> MakeBugReport(const BundleRecording& recording,
                           const solver::SolveReport& solved) {
  const Contradiction& at = solved.windows.furthest;
  CodeNames places(recording);
  const std::string place = places.NameOf(TraceeAddr(at.ip));
  Json report = {{"format", kReportFormat},
                 {"clew", CLEW_VERSION},
                 {"recorded", RecordedBy(recording.bundle.manifest())},
                 {"verdict", VerdictName(solved)},
                 {"difference",
                  Describe(solved.difference.value_or(solver::ModelDifference{
                               .at = at, .last_call = std::nullopt}),
                           place)},
                 {"threads", recording.trace->threads().size()},
                 {"doubts", solved.doubts},
                 {"mappings_at_start", Mappings(recording.recording.start)},
                 {"inputs", Json::array()},
                 {"blocks", Json::array()},
                 {"instructions", Json::array()}};
  if (!at.text.empty()) {
    CLEW_ASSIGN_OR_RETURN(inputs, LastInputs(recording, at, places));
    report["inputs"] = std::move(inputs);
    CLEW_RETURN_IF_ERROR(AddCode(recording, at, places, report));
  }
  return report;
}

}  // namespace clew::cli
