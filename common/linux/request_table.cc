#include "common/linux/request_table.h"

#include <asm/unistd_64.h>
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "common/linux/ioctl_size.h"
#include "common/linux/requests_fcntl.h"
#include "common/linux/requests_ioctl.h"
#include "common/linux/requests_ipc.h"
#include "common/linux/requests_keyctl.h"
#include "common/linux/requests_prctl.h"

namespace clew {
namespace {

constexpr RequestCall kRequestCalls[] = {
    {__NR_ioctl, 1, request_rows::kIoctlRequests},
    {__NR_fcntl, 1, request_rows::kFcntlRequests},
    {__NR_prctl, 0, request_rows::kPrctlRequests},
    {__NR_arch_prctl, 0, request_rows::kArchPrctlRequests},
    {__NR_semctl, 2, request_rows::kSemctlRequests},
    {__NR_msgctl, 1, request_rows::kMsgctlRequests},
    {__NR_shmctl, 1, request_rows::kShmctlRequests},
    {__NR_keyctl, 0, request_rows::kKeyctlRequests},
};

constexpr bool HasEachRequestOnce(const RequestCall& call) {
  return std::ranges::all_of(call.rows, [&call](const RequestRow& row) {
    return std::ranges::count(call.rows, row.number, &RequestRow::number) == 1;
  });
}
static_assert(std::ranges::all_of(kRequestCalls, HasEachRequestOnce),
              "two rows for one request of a call");

constexpr bool WritesAtPointers(const RequestCall& call) {
  return std::ranges::all_of(call.rows, [&call](const RequestRow& row) {
    return row.bytes == 0 || row.arguments[call.argument + row.behind] == 'l';
  });
}
static_assert(std::ranges::all_of(kRequestCalls, WritesAtPointers),
              "a row whose memory is at no pointer");

std::optional<RequestRow> RowByNumber(uint32_t request) {
  if (IoctlArgumentBytes(request) == 0) {
    return std::nullopt;
  }
  return RequestRow{.number = request,
                    .arguments = "iil",
                    .bytes = static_cast<uint16_t>(IoctlWrittenBytes(request))};
}

}  // namespace

std::span<const RequestCall> AllRequestCalls() { return kRequestCalls; }

const RequestCall* FindRequestCall(uint64_t number) {
  const auto* const found =
      std::ranges::find(kRequestCalls, number, &RequestCall::number);
  return found == std::end(kRequestCalls) ? nullptr : found;
}

std::optional<RequestRow> FindRequest(
    uint64_t number, const std::array<uint64_t, kSyscallArguments>& args) {
  const RequestCall* const call = FindRequestCall(number);
  if (call == nullptr) {
    return std::nullopt;
  }
  const uint32_t request = RequestIn(args[call->argument]);
  const auto row = std::ranges::find(call->rows, request, &RequestRow::number);
  if (row != call->rows.end()) {
    return *row;
  }
  return number == __NR_ioctl ? RowByNumber(request) : std::nullopt;
}

std::string CallName(uint64_t number,
                     const std::array<uint64_t, kSyscallArguments>& args) {
  const auto request = FindRequest(number, args);
  return request && request->name != nullptr
             ? fmt::format("{} {}", SyscallName(number), request->name)
             : SyscallName(number);
}

}  // namespace clew
