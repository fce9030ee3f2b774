#include "recorder/native/known_code.h"

#include <algorithm>
#include <array>
#include <span>

#include "common/inputs.h"
#include "common/x86/layout.h"
#include "common/x86/page.h"

namespace clew::recorder {
namespace {

using x86::Layout;
using x86::OpcodeMap;

constexpr uint8_t kSyscall = 0x05;  // in the map of two-byte opcodes
constexpr uint8_t kPushFlags = 0x9c;

// XSAVE, XRSTOR, XSAVEOPT; XRSTORS, XSAVEC, XSAVES.
bool ChoosesComponents(const Layout& layout) {
  if (!layout.opcode.IsLegacy(OpcodeMap::k0F) || !layout.names_memory()) {
    return false;
  }
  const int extension = *layout.modrm >> 3 & 7;
  return (layout.opcode.code == 0xae && extension >= 4 && extension <= 6) ||
         (layout.opcode.code == 0xc7 && extension >= 3 && extension <= 5);
}

NativeInsn Classify(std::span<const uint8_t> bytes, uint64_t ip) {
  const Layout layout = x86::ScanLayout(bytes);
  NativeInsn insn;
  insn.branch_class = x86::ClassifyBranch(bytes).branch_class;
  insn.input = ClassifyInput(bytes);
  insn.fall_through = TraceeAddr(ip + bytes.size());
  insn.is_syscall =
      layout.opcode.IsLegacy(OpcodeMap::k0F) && layout.opcode.code == kSyscall;
  insn.chooses_components = ChoosesComponents(layout);
  if (layout.opcode.IsLegacy(OpcodeMap::kOneByte) &&
      layout.opcode.code == kPushFlags) {
    insn.pushes_flags_bytes = layout.opcode.prefixes.operand_size ? 2 : 8;
  }
  return insn;
}

bool IsExecutable(uint64_t ip, int32_t process) {
  const auto regions = ListRegionsOf(process, 0, 0);
  return regions && std::ranges::any_of(*regions, [ip](const auto& region) {
           return region.addr <= ip && ip < region.addr + region.size_bytes &&
                  (region.prot & kProtExec) != 0;
         });
}

}  // namespace

void KnownCode::Map(const ExecMapping& mapping) {
  Unmap(mapping.addr, mapping.size_bytes);
  ranges_.push_back({mapping.addr, mapping.addr + mapping.size_bytes});
}

void KnownCode::Unmap(uint64_t addr, uint64_t size_bytes) {
  const uint64_t end = addr + size_bytes;
  std::vector<Range> left;
  bool changed = false;
  for (const Range& range : ranges_) {
    if (range.end <= addr || end <= range.begin) {
      left.push_back(range);
      continue;
    }
    changed = true;
    if (range.begin < addr) {
      left.push_back({range.begin, addr});
    }
    if (end < range.end) {
      left.push_back({end, range.end});
    }
  }
  if (changed) {
    ranges_ = std::move(left);
    known_.clear();
  }
}

bool KnownCode::IsOfFile(uint64_t ip) const {
  return std::ranges::any_of(ranges_, [ip](const Range& range) {
    return range.begin <= ip && ip < range.end;
  });
}

Result<NativeInsn> KnownCode::At(uint64_t ip, const GuestMemory& memory) {
  const auto known = known_.find(ip);
  if (known != known_.end()) {
    return known->second;
  }
  if (!IsOfFile(ip) && !IsExecutable(ip, memory.process())) {
    return NativeInsn{.fall_through = TraceeAddr(ip)};
  }
  if (!IsOfFile(ip)) {
    return Unsupported(
        "the program executes at {:#x}, which is code of no file; such code "
        "cannot be recorded by stepping: use --source qemu",
        ip);
  }
  std::array<uint8_t, x86::kInsnBytesMax> bytes = {};
  size_t count = bytes.size();
  if (!memory.Read(ip, bytes.data(), count)) {
    count = std::min<size_t>(count, kPageBytes - ip % kPageBytes);
    if (!memory.Read(ip, bytes.data(), count)) {
      count = 0;
    }
  }
  const std::span<const uint8_t> code = std::span(bytes).first(count);
  const auto insn = code.first(x86::ScanLayout(code).length);
  if (!insn.empty()) {
    list_.Add(ip, insn);
  }
  return known_.emplace(ip, Classify(insn, ip)).first->second;
}

}  // namespace clew::recorder
