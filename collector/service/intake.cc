#include "collector/service/intake.h"

#include <algorithm>
#include <cerrno>
#include <set>
#include <string_view>
#include <vector>

#include "collector/catalogue/text.h"
#include "common/text/signal_text.h"
#include "proto/bundle.pb.h"

namespace clew::collector {
namespace {

constexpr uint64_t kRowsAtOnce = 1000;

NewBundle Unnamed(const BundleId& id, const std::string& host) {
  return {.id = id,
          .host = host,
          .unit = "",
          .command = "",
          .source = "unknown",
          .failure = "unknown",
          .sufficiency = std::nullopt};
}

std::string CommandOf(const pb::Manifest& manifest) {
  std::string command;
  for (const std::string& word : manifest.command()) {
    command += (command.empty() ? "" : " ") + word;
    if (command.size() > kCatalogueTextMax) {
      break;
    }
  }
  return CleanLine(command, kCatalogueTextMax);
}

std::string SourceOf(const pb::Manifest& manifest) {
  switch (manifest.source()) {
    case pb::Manifest::SOURCE_PERF:
      return "perf";
    case pb::Manifest::SOURCE_QEMU:
      return "qemu";
    case pb::Manifest::SOURCE_STEPPER:
      return "stepper";
    case pb::Manifest::SOURCE_IMPORTED:
      return "imported";
    default:
      return "unknown";
  }
}

// A kind of trigger that is not named here does not compile.
#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wswitch"
// What is known of a run that has no failure of its own to tell.
std::string FailureOf(const pb::Trigger& trigger) {
  switch (trigger.kind()) {
    case pb::Trigger::KIND_UNIT_FAILED:
      return "the unit failed";
    case pb::Trigger::KIND_REQUEST:
      return "snapshot";
    case pb::Trigger::KIND_UNKNOWN:
    case pb::Trigger::KIND_CORE:  // its failure is a signal
    case pb::Trigger::KIND_HANG:  // its failure is a hang
    case pb::Trigger_Kind_Trigger_Kind_INT_MIN_SENTINEL_DO_NOT_USE_:
    case pb::Trigger_Kind_Trigger_Kind_INT_MAX_SENTINEL_DO_NOT_USE_:
      break;
  }
  return "none";  // as for a number that proto/bundle.proto does not have
}
#pragma GCC diagnostic pop

std::string FailureOf(const pb::Manifest& manifest) {
  const pb::Failure& failure = manifest.failure();
  switch (failure.kind()) {
    case pb::Failure::KIND_NONE:
      return FailureOf(manifest.trigger());
    case pb::Failure::KIND_SIGNAL:
      return SignalText(failure.signal());
    case pb::Failure::KIND_EXIT:
      return fmt::format("exit status {}", failure.exit_status());
    case pb::Failure::KIND_HANG:
      return "hang";
    case pb::Failure::KIND_TIME_LIMIT:
      return "time limit";
    default:
      return "unknown";
  }
}

Result<pb::Manifest> ReadManifest(ChunkStore& chunks, const FileList& list) {
  const auto file =
      std::ranges::find(list.files(), "manifest.pb", &FileEntry::path);
  if (file == list.files().end()) {
    return CorruptInput("the bundle has no manifest.pb");
  }
  if (file->size_bytes > kStoredManifestBytesMax) {
    return LimitReached("manifest.pb has {} bytes, at most {} are taken",
                        file->size_bytes, kStoredManifestBytesMax);
  }
  std::string bytes;
  for (size_t i = 0; i < file->chunks.size(); ++i) {
    CLEW_ASSIGN_OR_RETURN(chunk, chunks.Read(file->chunk(i)));
    bytes.append(reinterpret_cast<const char*>(chunk.data()), chunk.size());
  }
  pb::Manifest manifest;
  if (!manifest.ParseFromString(bytes)) {
    return CorruptInput(
        "manifest.pb ({} bytes) is no manifest of a bundle; record it again",
        bytes.size());
  }
  return manifest;
}

Result<std::set<BundleId>> IdsIn(const Catalogue& catalogue) {
  std::set<BundleId> ids;
  for (uint64_t offset = 0;; offset += kRowsAtOnce) {
    CLEW_ASSIGN_OR_RETURN(
        page, catalogue.Bundles({.offset = offset, .limit = kRowsAtOnce}));
    for (const BundleRow& row : page.rows) {
      ids.insert(row.id);
    }
    if (page.rows.size() < kRowsAtOnce) {
      return ids;
    }
  }
}

// A stored bundle has a row even if its manifest cannot be read.
Result<NewBundle> DescribeStored(BundleStore& store, const BundleId& id,
                                 int64_t now_s) {
  CLEW_ASSIGN_OR_RETURN(list, store.ReadList(id));
  CLEW_ASSIGN_OR_RETURN(kept, store.ReadReceipt(id));
  const Receipt receipt =
      kept.value_or(Receipt{.host = kHostNotKnown, .received_at_s = now_s});
  auto bundle =
      Describe(store.chunks(), list, receipt.host, receipt.received_at_s);
  if (bundle || bundle.error().code == ErrorCode::kSystem) {
    return bundle;
  }
  NewBundle unknown = Unnamed(id, receipt.host);
  unknown.received_at_s = receipt.received_at_s;
  unknown.size_bytes = list.size_bytes();
  return unknown;
}

}  // namespace

Result<NewBundle> Describe(ChunkStore& chunks, const FileList& list,
                           const std::string& host, int64_t received_at_s) {
  CLEW_ASSIGN_OR_RETURN(manifest, ReadManifest(chunks, list));
  NewBundle bundle = Unnamed(list.id(), host);
  bundle.unit = CleanLine(manifest.trigger().unit(), kCatalogueTextMax);
  bundle.command = CommandOf(manifest);
  bundle.source = SourceOf(manifest);
  bundle.failure = FailureOf(manifest);
  bundle.recorded_at_s = manifest.recorded_at_s();
  bundle.received_at_s = received_at_s;
  bundle.size_bytes = list.size_bytes();
  if (manifest.has_sufficiency()) {
    bundle.sufficiency = std::min(manifest.sufficiency().score(), 100u);
  }
  return bundle;
}

Result<Reconciled> Reconcile(BundleStore& store, Catalogue& catalogue,
                             int64_t now_s,
                             const std::function<bool()>& go_on) {
  // The rows first: a bundle that is committed meanwhile is in the list, too.
  CLEW_ASSIGN_OR_RETURN(rows, IdsIn(catalogue));
  Reconciled done;
  for (const StoredBundle& stored : store.List()) {
    if (!go_on()) {
      return SystemError(ECANCELED,
                         "the catalogue does not say yet what the "
                         "store has");
    }
    if (rows.erase(stored.id) == 0) {
      CLEW_ASSIGN_OR_RETURN(bundle, DescribeStored(store, stored.id, now_s));
      CLEW_RETURN_IF_ERROR(catalogue.Add(bundle));
      ++done.added;
    }
  }
  for (const BundleId& id : rows) {
    if (store.IsDamaged(id)) {
      continue;  // it is named, and heals
    }
    CLEW_RETURN_IF_ERROR(catalogue.Remove(id));
    ++done.removed;
  }
  return done;
}

Status AddReceipts(BundleStore& store, const Catalogue& catalogue,
                   size_t most) {
  size_t added = 0;
  for (const BundleId& id : store.WithoutReceipt()) {
    if (added == most) {
      return {};
    }
    CLEW_ASSIGN_OR_RETURN(row, catalogue.Bundle(id));
    if (!row || row->host == kHostNotKnown || store.IsDamaged(id)) {
      continue;
    }
    CLEW_RETURN_IF_ERROR(store.AddReceipt(
        id, {.host = row->host, .received_at_s = row->received_at_s}));
    ++added;
  }
  return {};
}

}  // namespace clew::collector
