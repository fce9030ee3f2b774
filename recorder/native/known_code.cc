#include "recorder/native/known_code.h"

#include <asm/unistd_64.h>

#include <algorithm>
#include <array>
#include <span>

#include "common/inputs.h"
#include "common/x86/layout.h"
#include "common/x86/page.h"
#include "recorder/qemu/raw_code.h"

namespace clew::recorder {
namespace {

using x86::Layout;
using x86::OpcodeMap;

constexpr uint8_t kSyscall = 0x05;  // in the map of two-byte opcodes
constexpr uint8_t kPushFlags = 0x9c;

NativeInsn Classify(std::span<const uint8_t> bytes, uint64_t ip) {
  const Layout layout = x86::ScanLayout(bytes);
  NativeInsn insn;
  insn.branch_class = x86::ClassifyBranch(layout.opcode, bytes).branch_class;
  insn.input = x86::ClassifyInput(layout);
  insn.fall_through = TraceeAddr(ip + bytes.size());
  insn.is_syscall =
      layout.opcode.IsLegacy(OpcodeMap::k0F) && layout.opcode.code == kSyscall;
  insn.chooses_components = x86::ChoosesComponents(layout);
  if (layout.opcode.IsLegacy(OpcodeMap::kOneByte) &&
      layout.opcode.code == kPushFlags) {
    insn.pushes_flags_bytes = layout.opcode.prefixes.operand_size ? 2 : 8;
  }
  return insn;
}

// What is readable of an instruction's bytes at `ip`.
std::span<const uint8_t> ReadCode(
    uint64_t ip, const GuestMemory& memory,
    std::array<uint8_t, x86::kInsnBytesMax>& bytes) {
  size_t count = bytes.size();
  if (!memory.Read(ip, bytes.data(), count)) {
    count = std::min<size_t>(count, kPageBytes - ip % kPageBytes);
    if (!memory.Read(ip, bytes.data(), count)) {
      count = 0;
    }
  }
  return std::span(bytes).first(count);
}

}  // namespace

void KnownCode::Map(const ExecMapping& mapping) {
  code_.Map(mapping);
  if (files_ != nullptr) {
    files_->Add(std::string(mapping.path));
  }
  // From the first that may reach into it on.
  const uint64_t begin = mapping.addr - x86::kInsnBytesMax;
  std::erase_if(known_, [&](const auto& known) {
    return known.first - begin < mapping.size_bytes + x86::kInsnBytesMax;
  });
  ++cleared_;
}

void KnownCode::Release(const SyscallCall& call, uint64_t result) {
  switch (call.number) {
    case __NR_mmap:
    case __NR_munmap:
    case __NR_mremap:
    case __NR_mprotect:
    case __NR_pkey_mprotect:
      executable_.clear();
      if (code_.ReleaseChangedBy(call, result)) {
        Clear();
      }
      return;
    default:
      return;
  }
}

bool KnownCode::IsExecutable(uint64_t ip, int32_t process) {
  const auto has = [ip](const MemoryRange& range) {
    return ip - range.addr < range.size_bytes;
  };
  if (std::ranges::any_of(executable_, has)) {
    return true;
  }
  executable_.clear();
  const auto regions = ListRegionsOf(process, 0, 0);
  for (const GuestRegion& region :
       regions.value_or(std::vector<GuestRegion>())) {
    if ((region.prot & kProtExec) != 0) {
      executable_.push_back({region.addr, region.size_bytes});
    }
  }
  return std::ranges::any_of(executable_, has);
}

NativeInsn KnownCode::At(uint64_t ip, const GuestMemory& memory, uint64_t now) {
  const auto known = known_.find(ip);
  if (known != known_.end()) {
    return known->second;
  }
  if (!IsExecutable(ip, memory.process())) {
    return {.fall_through = TraceeAddr(ip)};
  }
  std::array<uint8_t, x86::kInsnBytesMax> bytes = {};
  const auto code = ReadCode(ip, memory, bytes);
  return Look(ip, code.first(x86::ScanLayout(code).length), now);
}

NativeInsn KnownCode::Executed(uint64_t ip, std::span<const uint8_t> insn,
                               uint64_t now) {
  const auto known = known_.find(ip);
  return known != known_.end() ? known->second : Look(ip, insn, now);
}

NativeInsn KnownCode::Look(uint64_t ip, std::span<const uint8_t> insn,
                           uint64_t now) {
  NativeInsn result = Classify(insn, ip);
  if (insn.empty()) {
    return result;
  }
  list_.Add(ip, insn);
  const auto look = code_.LookAt(ip, std::as_bytes(insn));
  result.version = look.version;
  for (const CodeChange& change : look.changes) {
    WriteChange(
        change,
        std::as_bytes(insn).subspan(change.addr - ip, change.size_bytes), now);
  }
  if (!look.generated) {
    known_.emplace(ip, result);
  }
  return result;
}

void KnownCode::WriteChange(const CodeChange& change,
                            std::span<const std::byte> bytes, uint64_t now) {
  const RawCode head{.time = now,
                     .addr = change.addr,
                     .size_bytes = change.size_bytes,
                     .replaces = change.replaces ? 1u : 0u};
  generated_.Append(std::as_bytes(std::span(&head, 1)));
  generated_.Append(bytes);
}

Status KnownCode::Close() {
  const Status listed = list_.file().Close();
  const Status closed = generated_.Close();
  return listed ? closed : listed;
}

}  // namespace clew::recorder
