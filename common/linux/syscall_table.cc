#include "common/linux/syscall_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "common/linux/calls_descriptors.h"
#include "common/linux/calls_files.h"
#include "common/linux/calls_memory.h"
#include "common/linux/calls_messages.h"
#include "common/linux/calls_processes.h"
#include "common/linux/calls_signals.h"
#include "common/linux/calls_sockets.h"
#include "common/linux/calls_system.h"
#include "common/linux/calls_time.h"

namespace clew {
namespace {

template <size_t... kSizes>
constexpr auto Joined(const SyscallRow (&... areas)[kSizes]) {
  std::array<SyscallRow, (kSizes + ...)> rows = {};
  auto end = rows.begin();
  ((end = std::ranges::copy(areas, end).out), ...);
  std::ranges::sort(rows, {}, &SyscallRow::number);
  return rows;
}

constexpr std::array kRows =
    Joined(syscall_rows::kDescriptorCalls, syscall_rows::kFileCalls,
           syscall_rows::kMemoryCalls, syscall_rows::kMessageCalls,
           syscall_rows::kProcessCalls, syscall_rows::kSignalCalls,
           syscall_rows::kSocketCalls, syscall_rows::kSystemCalls,
           syscall_rows::kTimeCalls);

static_assert(std::ranges::adjacent_find(kRows, {}, &SyscallRow::number) ==
                  kRows.end(),
              "two rows for one system call");

constexpr bool IsPointer(const SyscallRow& row, uint8_t arg) {
  return arg < kSyscallArguments && row.arguments[arg] == 'l';
}

// Where the order of Extent divides.
constexpr bool IsWritten(Extent extent) { return extent <= Extent::kBits; }
constexpr bool IsRead(Extent extent) {
  return extent <= Extent::kVector || extent >= Extent::kLength;
}

constexpr bool IsSound(const SyscallRow& row) {
  const auto at_pointer = [&row](const Pointee& pointee) {
    return pointee.extent == Extent::kNone || IsPointer(row, pointee.arg);
  };
  return std::ranges::all_of(row.writes, at_pointer) &&
         std::ranges::all_of(row.reads, at_pointer) &&
         std::ranges::all_of(row.writes, IsWritten, &Pointee::extent) &&
         std::ranges::all_of(row.reads, IsRead, &Pointee::extent) &&
         (row.output == SyscallOutput::kNone || IsPointer(row, 1));
}
static_assert(std::ranges::all_of(kRows, IsSound),
              "a row whose memory is at no pointer, or an extent of the other "
              "direction");

bool WritesMemory(const SyscallRow& row) {
  return row.special != SpecialEffect::kNone ||
         row.writes[0].extent != Extent::kNone;
}

uint64_t Low(uint64_t value, char width) {
  switch (width) {
    case 'i':
      return value & UINT32_MAX;
    case 'h':
      return value & UINT16_MAX;
    case 'b':
      return value & UINT8_MAX;
    default:
      return value;
  }
}

}  // namespace

std::span<const SyscallRow> AllSyscalls() { return kRows; }

const SyscallRow* FindSyscall(uint64_t number) {
  const auto found =
      std::ranges::lower_bound(kRows, number, {}, &SyscallRow::number);
  return found != kRows.end() && found->number == number ? &*found : nullptr;
}

std::string SyscallName(uint64_t number) {
  const SyscallRow* const row = FindSyscall(number);
  return row == nullptr
             ? fmt::format("syscall {}",
                           static_cast<int32_t>(SyscallNumber(number)))
             : row->name;
}

uint64_t SyscallArgument(const SyscallRow& row,
                         const std::array<uint64_t, kSyscallArguments>& args,
                         size_t index) {
  return Low(args[index], row.arguments[index]);
}

bool SyscallMayBlock(uint64_t number) {
  const SyscallRow* const row = FindSyscall(number);
  return row != nullptr && row->blocking != Blocking::kNever &&
         (row->blocking != Blocking::kWritable || WritesMemory(*row));
}

}  // namespace clew
