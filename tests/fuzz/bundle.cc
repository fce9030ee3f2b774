// The messages of a bundle and its core dump: manifest.pb, start.pb, inputs.pb,
// schedule.pb, core. The first byte says which. Where protobuf finds no message
// there must be a place to name, and only there.

#include <cstddef>
#include <cstdint>
#include <span>

#include "bundle/convert_inputs.h"
#include "bundle/core_dump/core_dump.h"
#include "bundle/input_log.h"
#include "bundle/manifest/convert_manifest.h"
#include "bundle/manifest/message.h"
#include "bundle/manifest/wire_fault.h"
#include "common/check.h"

namespace {

using namespace clew::bundle;  // NOLINT: a fuzz target is one function

bool Parses(std::span<const std::byte> bytes,
            google::protobuf::Message& message) {
  const bool parses = ParseMessage(bytes, message);
  const auto fault = FindWireFault(bytes, *message.GetDescriptor());
  CLEW_CHECK(parses != fault.has_value(), "protobuf says {}, we {:?}", parses,
             fault ? fault->message : "");
  return parses;
}

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
      if (Parses(bytes, manifest)) {
        (void)ToManifest(manifest, "manifest.pb", "b.clew");
      }
      break;
    case 1:
      if (Parses(bytes, start)) {
        (void)ToStart(start, "start.pb");
      }
      break;
    case 2:
      ReadInputs(bytes);
      break;
    case 3:
      if (Parses(bytes, schedule)) {
        (void)ToSchedule(schedule, "schedule.pb");
      }
      break;
    default:
      (void)CoreDump::Over(bytes, "core");
      break;
  }
  return 0;
}
