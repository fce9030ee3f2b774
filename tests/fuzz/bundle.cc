// The messages of a bundle and its core dump: manifest.pb, start.pb, inputs.pb,
// schedule.pb, core. The first byte says which.

#include <cstddef>
#include <cstdint>
#include <span>

#include "decoder/bundle/convert.h"
#include "decoder/bundle/input_log.h"
#include "decoder/core_dump.h"

namespace {

using namespace clew::decoder;  // NOLINT: a fuzz target is one function

void ReadInputs(std::span<const std::byte> bytes) {
  const auto log = InputLog::Over(bytes, "inputs.pb");
  if (!log) {
    return;
  }
  for (const clew::Tid tid : (*log)->threads()) {
    auto next = (*log)->Next(tid);
    while (next && *next) {
      next = (*log)->Next(tid);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) {
    return 0;
  }
  const auto bytes = std::as_bytes(std::span(data + 1, size - 1));
  clew::pb::Manifest manifest;
  clew::pb::Start start;
  clew::pb::Schedule schedule;
  switch (data[0] % 5) {
    case 0:
      if (ParseMessage(bytes, manifest)) {
        (void)ToManifest(manifest, "manifest.pb", "b.clew");
      }
      break;
    case 1:
      if (ParseMessage(bytes, start)) {
        (void)ToStart(start, "start.pb");
      }
      break;
    case 2:
      ReadInputs(bytes);
      break;
    case 3:
      if (ParseMessage(bytes, schedule)) {
        (void)ToSchedule(schedule, "schedule.pb");
      }
      break;
    default:
      (void)CoreDump::Over(bytes, "core");
      break;
  }
  return 0;
}
