#include "replayer/gdb/tls.h"

#include <array>
#include <cstddef>

#include "replayer/load_value.h"

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

std::optional<uint64_t> ModuleOf(const ReplayTarget& target, uint64_t link_map,
                                 std::optional<uint64_t> module_id_desc) {
  if (link_map == 0) {
    return kProgramsModule;
  }
  if (!module_id_desc) {
    return std::nullopt;
  }
  const auto desc = LoadValue<std::array<uint32_t, 3>>(target, *module_id_desc);
  if (!desc || (*desc)[0] != 64 || (*desc)[1] != 1) {
    return std::nullopt;
  }
  return LoadValue<uint64_t>(target, link_map + (*desc)[2]);
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
  const auto dtv =
      LoadValue<uint64_t>(target, registers->fs_base + kDtvInThread);
  const auto entries =
      dtv ? LoadValue<uint64_t>(target, *dtv - kDtvEntryBytes) : std::nullopt;
  if (!entries || *module > *entries) {
    return std::nullopt;
  }
  const auto block =
      LoadValue<uint64_t>(target, *dtv + *module * kDtvEntryBytes);
  if (!block || *block == 0 || *block == kUnallocated) {
    return std::nullopt;
  }
  return *block + variable.offset;
}

}  // namespace clew::replayer::gdb
