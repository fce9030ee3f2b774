#include "tests/decoder/perf_script.h"

#include <stdio.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>

namespace clew::decoder {
namespace {

struct ClosePipe {
  void operator()(FILE* pipe) const { pclose(pipe); }
};

// Near branches of 64-bit code (SDM vol. 2, "Opcode Map"), behind prefixes.
bool IsBranch(std::span<const uint8_t> bytes, bool& conditional) {
  size_t at = 0;
  while (at + 1 < bytes.size() &&
         (bytes[at] == 0xf2 || bytes[at] == 0xf3 || bytes[at] == 0x3e ||
          bytes[at] == 0x2e || (bytes[at] & 0xf0) == 0x40)) {
    ++at;
  }
  const uint8_t opcode = bytes[at];
  const uint8_t next = at + 1 < bytes.size() ? bytes[at + 1] : 0;
  const auto group = static_cast<uint8_t>(next >> 3 & 7);
  conditional = (opcode & 0xf0) == 0x70 || (opcode & 0xfc) == 0xe0 ||
                (opcode == 0x0f && (next & 0xf0) == 0x80);
  return conditional || opcode == 0xe8 || opcode == 0xe9 || opcode == 0xeb ||
         opcode == 0xc2 || opcode == 0xc3 ||
         (opcode == 0xff && (group == 2 || group == 4));
}

using Pipe = std::unique_ptr<FILE, ClosePipe>;

Result<Pipe> RunPerfScript(const std::string& options) {
  if (std::system("perf --version > /dev/null 2>&1") != 0) {
    return Unsupported("no perf here (Debian package linux-perf)");
  }
  Pipe pipe(popen(("perf script " + options).c_str(), "r"));
  if (pipe == nullptr) {
    return Unsupported("cannot start perf script");
  }
  return pipe;
}

// Calls `visit` for each item of the thread's stream.
Status ForEachItem(TraceStreams& streams, Tid tid,
                   const std::function<Status(const StreamItem&)>& visit) {
  while (true) {
    CLEW_ASSIGN_OR_RETURN(item, streams.Next(tid));
    if (!item) {
      return {};
    }
    CLEW_RETURN_IF_ERROR(visit(*item));
  }
}

}  // namespace

// A line: "<tid> <from> => <to>". Addresses of 0 stand for outside user mode.
// "e" in --itrace: errors of decoding are lines, too.
Result<Branches> BranchesOfPerf(const std::string& perf_data) {
  CLEW_ASSIGN_OR_RETURN(
      pipe, RunPerfScript("--itrace=be -F tid,ip,addr --no-demangle -i '" +
                          perf_data + "' 2>&1"));
  Branches branches;
  char line[512];
  while (std::fgets(line, sizeof line, pipe.get()) != nullptr) {
    int32_t tid = 0;
    Branch branch;
    if (std::sscanf(line, " %" SCNd32 " %" SCNx64 " => %" SCNx64, &tid,
                    &branch.from, &branch.to) != 3) {
      return CorruptInput("perf script: {:?}", std::string(line));
    }
    if (branch.from != 0 && branch.to != 0) {
      branches[Tid(tid)].push_back(branch);
    }
  }
  return branches;
}

Result<Ips> IpsOfPerf(const std::string& perf_data) {
  CLEW_ASSIGN_OR_RETURN(pipe, RunPerfScript("--itrace=i0ns -F tid,ip -i '" +
                                            perf_data + "' 2> /dev/null"));
  Ips ips;
  char line[512];
  while (std::fgets(line, sizeof line, pipe.get()) != nullptr) {
    int32_t tid = 0;
    uint64_t ip = 0;
    if (std::sscanf(line, " %" SCNd32 " %" SCNx64, &tid, &ip) == 2) {
      ips[Tid(tid)].push_back(ip);
    }
  }
  return ips;
}

Result<Ips> IpsOfStreams(TraceStreams& streams) {
  Ips ips;
  for (const Tid tid : streams.threads()) {
    const auto take = [&](const StreamItem& item) -> Status {
      const auto* block = std::get_if<StreamBlock>(&item);
      if (block == nullptr) {
        return CorruptInput("a gap of thread {} after {} instructions", tid,
                            ips[tid].size());
      }
      return streams.ForEachInstruction(*block, [&](const WalkedInsn& insn) {
        ips[tid].push_back(insn.ip.as_int());
      });
    };
    CLEW_RETURN_IF_ERROR(ForEachItem(streams, tid, take));
  }
  return ips;
}

Result<Branches> BranchesOfStreams(TraceStreams& streams) {
  Branches branches;
  for (const Tid tid : streams.threads()) {
    std::optional<WalkedInsn> before;
    bool left = false;    // user mode, by SYSCALL
    bool branch = false;  // `before` is one
    bool conditional = false;
    const auto visit = [&](const WalkedInsn& insn) {
      const bool sequential =
          before && before->ip.as_int() + before->size == insn.ip.as_int();
      // A jump may lead to the next instruction, too.
      if (before && !left && (!sequential || (branch && !conditional))) {
        branches[tid].push_back({before->ip.as_int(), insn.ip.as_int()});
      }
      before = WalkedInsn{.ip = insn.ip, .size = insn.size, .bytes = {}};
      left = insn.bytes.size() == 2 && insn.bytes[0] == 0x0f &&
             insn.bytes[1] == 0x05;
      branch = IsBranch(insn.bytes, conditional);
    };
    const auto take = [&](const StreamItem& item) -> Status {
      const auto* block = std::get_if<StreamBlock>(&item);
      if (block == nullptr) {
        before.reset();
        return {};
      }
      CLEW_RETURN_IF_ERROR(streams.ForEachInstruction(*block, visit));
      // A branch right before an interrupt went where the thread goes on.
      // Where another instruction is not followed by the next, it is a signal.
      left = left || (block->interrupted && !branch);
      return {};
    };
    CLEW_RETURN_IF_ERROR(ForEachItem(streams, tid, take));
    if (before && branch && !left) {
      branches[tid].push_back({before->ip.as_int(), 0});
    }
  }
  return branches;
}

void ForgetOpenEnds(Branches& perf, Branches& ours) {
  for (auto& [tid, branches] : ours) {
    if (branches.empty() || branches.back().to != 0) {
      continue;
    }
    const auto theirs = perf.find(tid);
    if (theirs != perf.end() && theirs->second.size() == branches.size() &&
        theirs->second.back().from == branches.back().from) {
      theirs->second.pop_back();
    }
    branches.pop_back();
  }
}

}  // namespace clew::decoder
