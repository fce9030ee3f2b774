#include "replayer/gdb/tls.h"

#include <array>
#include <cstddef>
#include <cstring>
#include <span>

namespace clew::replayer::gdb {
namespace {

// glibc: sysdeps/x86_64/nptl/tls.h, tcbhead_t.dtv; sysdeps/generic/dl-dtv.h,
// dtv_t: the entry before the first has their number, then come a generation
// and one entry per module, the pointer first.
constexpr uint64_t kDtvInThread = 8;
constexpr uint64_t kDtvEntryBytes = 16;
constexpr uint64_t kUnallocated = UINT64_MAX;

constexpr uint64_t kProgramsModule = 1;
constexpr uint64_t kModulesMax = uint64_t{1} << 20;

template <class T>
std::optional<T> Load(const ReplayTarget& target, uint64_t addr) {
  std::array<std::byte, sizeof(T)> bytes = {};
  if (target.ReadMemory(TraceeAddr(addr), bytes) != bytes.size()) {
    return std::nullopt;
  }
  T value;
  std::memcpy(&value, bytes.data(), bytes.size());
  return value;
}

std::optional<uint64_t> ModuleOf(const ReplayTarget& target, uint64_t link_map,
                                 std::optional<uint64_t> module_id_desc) {
  if (link_map == 0) {
    return kProgramsModule;
  }
  if (!module_id_desc) {
    return std::nullopt;
  }
  const auto desc = Load<std::array<uint32_t, 3>>(target, *module_id_desc);
  if (!desc || (*desc)[0] != 64 || (*desc)[1] != 1) {
    return std::nullopt;
  }
  return Load<uint64_t>(target, link_map + (*desc)[2]);
}

}  // namespace

std::optional<uint64_t> FindTls(const ReplayTarget& target,
                                const TlsVariable& variable,
                                std::optional<uint64_t> module_id_desc) {
  const auto registers = target.ReadRegisters(variable.thread);
  const auto module = ModuleOf(target, variable.link_map, module_id_desc);
  if (!registers || registers->fs_base == 0 || !module || *module == 0 ||
      *module > kModulesMax) {
    return std::nullopt;
  }
  const auto dtv = Load<uint64_t>(target, registers->fs_base + kDtvInThread);
  const auto entries =
      dtv ? Load<uint64_t>(target, *dtv - kDtvEntryBytes) : std::nullopt;
  if (!entries || *module > *entries) {
    return std::nullopt;
  }
  const auto block = Load<uint64_t>(target, *dtv + *module * kDtvEntryBytes);
  if (!block || *block == 0 || *block == kUnallocated) {
    return std::nullopt;
  }
  return *block + variable.offset;
}

}  // namespace clew::replayer::gdb
