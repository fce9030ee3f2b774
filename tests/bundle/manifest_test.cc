// Goal: what is written as manifest.pb is read as the same manifest, whichever
// source wrote it and however the run ended; later edits keep the rest.
// Method: property; a manifest in which every field differs from its default,
// with every source, kind of failure and trigger; texts that are not UTF-8.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bundle/manifest/convert_manifest.h"
#include "bundle/manifest/manifest_writer.h"
#include "bundle/manifest/message.h"

namespace clew::bundle {
namespace {

Manifest Filled() {
  Manifest manifest;
  manifest.source = BundleSource::kPerf;
  manifest.cpu = {.is_intel = true, .family = 6, .model = 158, .stepping = 10};
  manifest.core_count = 8;
  manifest.clock_slack_ticks = 40;
  manifest.conversion = {.shift = 31, .mult = 863001, .zero = 77};
  manifest.timing = {.tsc_ctc_numerator = 216,
                     .tsc_ctc_denominator = 2,
                     .mtc_period = 3,
                     .mtc = true,
                     .tsc = true,
                     .cyc = true,
                     .max_nonturbo_ratio = 26};
  manifest.command = {"./server", "--port", "80"};
  manifest.working_directory = "/srv";
  manifest.recorded_at_s = 1'700'000'000;
  manifest.failure = {.kind = FailureKind::kSignal,
                      .signal = 11,
                      .exit_status = 3,
                      .thread = Tid(4711),
                      .ip = TraceeAddr(0x401000),
                      .addr = TraceeAddr(8)};
  manifest.images = {{.path = "/bin/server",
                      .build_id = {std::byte{0xab}, std::byte{0xcd}},
                      .has_build_id = true,
                      .not_verified = true,
                      .size_bytes = 4096}};
  manifest.lost_aux_bytes = 1;
  manifest.lost_records = 2;
  manifest.inputs_unknown = 3;
  manifest.seed = 4;
  manifest.quantum_insns = 5;
  manifest.core_registers_exact = true;
  manifest.origin = {.host = "web1",
                     .os_release = "6.1.0",
                     .cpu = "a CPU",
                     .perf_version = "6.1",
                     .snapshot = true};
  manifest.trigger = Trigger{.kind = TriggerKind::kHang,
                             .unit = "a.service",
                             .process = 12,
                             .at_ns = 13,
                             .not_saved = 14};
  manifest.sufficiency = Sufficiency{.score = 70,
                                     .decodes = true,
                                     .images_missing = 1,
                                     .gaps = 2,
                                     .gaps_at_failure = 1,
                                     .reasons = {"a gap"}};
  manifest.redactions = {"a rule"};
  manifest.unlogged_inputs = {"shared memory"};
  manifest.deviations = {"a call"};
  manifest.journal = {.lines = {{.at_us = 1,
                                 .process = 2,
                                 .unit = "a.service",
                                 .program = "server",
                                 .priority = 3,
                                 .message = "it broke"}},
                      .why = "cut"};
  manifest.assertion = "it was false";
  manifest.trace_dropped = "too large";
  manifest.settings =
      RunSettings{.arguments = {"./server", "\xff"},
                  .surroundings = {.program = "./server",
                                   .working_directory = "/srv/\xff",
                                   .environment = {"A=1", "B=\xff\n"},
                                   .stack_limit_bytes = 8 << 20},
                  .psb_period_bytes = 4096,
                  .fail_on = "exit!=0",
                  .timeout_s = 6,
                  .size_limit_bytes = 7};
  return manifest;
}

Result<Manifest> Read(const std::string& bytes) {
  pb::Manifest message;
  const auto span = std::as_bytes(std::span(bytes));
  if (!ParseMessage(span, message)) {
    return NoMessage(span, message, "manifest.pb");
  }
  return ToManifest(message, "manifest.pb", "b.clew");
}

// What only reading gives.
Manifest AsRead(Manifest manifest, const Manifest& read) {
  EXPECT_THAT(read.producer, testing::StartsWith("clew "));
  manifest.producer = read.producer;
  for (BundleImage& image : manifest.images) {
    image.file = "b.clew/images/abcd/server";
  }
  return manifest;
}

void ExpectReadAsWritten(const Manifest& manifest) {
  const auto read = Read(ManifestBytes(manifest));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, AsRead(manifest, *read));
}

TEST(ManifestTest, EveryFieldIsReadAsItWasWritten) {
  ExpectReadAsWritten(Filled());
  ExpectReadAsWritten(Manifest());
}

// A field that FromManifest forgets is not in the message.
TEST(ManifestTest, AFilledManifestSetsEveryFieldOfTheMessage) {
  pb::Manifest message;
  const std::string bytes = ManifestBytes(Filled());
  ASSERT_TRUE(ParseMessage(std::as_bytes(std::span(bytes)), message));
  const auto* type = pb::Manifest::descriptor();
  for (int i = 0; i < type->field_count(); ++i) {
    const auto* field = type->field(i);
    const auto* access = message.GetReflection();
    EXPECT_TRUE(field->is_repeated() ? access->FieldSize(message, field) > 0
                                     : access->HasField(message, field))
        << field->full_name();
  }
}

TEST(ManifestTest, EveryEndOfARunIsReadAsItWasWritten) {
  for (const BundleSource source :
       {BundleSource::kUnknown, BundleSource::kPerf, BundleSource::kQemu,
        BundleSource::kStepper, BundleSource::kImported, BundleSource::kTracer,
        BundleSource::kTracerFree}) {
    for (const FailureKind kind :
         {FailureKind::kNone, FailureKind::kSignal, FailureKind::kExit,
          FailureKind::kHang, FailureKind::kTimeLimit}) {
      Manifest manifest = Filled();
      manifest.source = source;
      manifest.failure.kind = kind;
      ExpectReadAsWritten(manifest);
    }
  }
}

TEST(ManifestTest, EveryTriggerIsReadAsItWasWritten) {
  for (const TriggerKind kind :
       {TriggerKind::kUnknown, TriggerKind::kCore, TriggerKind::kUnitFailed,
        TriggerKind::kHang, TriggerKind::kRequest}) {
    Manifest manifest = Filled();
    manifest.trigger->kind = kind;
    ExpectReadAsWritten(manifest);
  }
}

TEST(ManifestTest, TextsOfAnyBytesCanBeReadAgain) {
  Manifest manifest = Filled();
  manifest.command = {"./server",
                      "a\xff"
                      "b"};
  manifest.working_directory = "/\xc0";
  const auto read = Read(ManifestBytes(manifest));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->command.back(), "a?b");
  EXPECT_EQ(read->working_directory, "/?");
}

}  // namespace
}  // namespace clew::bundle
