#ifndef CLEW_COLLECTOR_SERVICE_INTAKE_H_
#define CLEW_COLLECTOR_SERVICE_INTAKE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "collector/catalogue/catalogue.h"
#include "collector/store/bundle_store.h"
#include "common/result.h"

namespace clew::collector {

// Of a manifest that is read here. More than a host's clewd admits, since
// imported bundles, which no clewd saw, come here, too.
inline constexpr uint64_t kStoredManifestBytesMax = uint64_t{16} << 20;
// Texts of a manifest go to the catalogue as CleanLine makes them.
inline constexpr size_t kCatalogueTextMax = 1024;
// The host of a bundle that was found without a row.
inline constexpr const char* kHostNotKnown = "?";

// Returns what the manifest says about a bundle. REQUIRES: all chunks of the
// bundle are stored. Fails with kCorruptInput if it has no valid manifest, with
// kLimit if that is larger than kStoredManifestBytesMax, and with kSystem
// if it cannot be read.
[[nodiscard]] Result<NewBundle> Describe(ChunkStore& chunks,
                                         const FileList& list,
                                         const std::string& host,
                                         int64_t received_at_s);

struct Reconciled {
  size_t added = 0;
  size_t removed = 0;
};

// Makes the catalogue say what the store has, after a crash or when the
// catalogue was lost: adds bundles without a row (those without a receipt as of
// kHostNotKnown, until the host sends it again) and removes rows without a
// bundle, but of one that is damaged. Bundles may be committed meanwhile, and
// none removed. `go_on` is asked often; where it says no, kSystem (ECANCELED).
// REQUIRES: store.IsAllRead().
[[nodiscard]] Result<Reconciled> Reconcile(
    BundleStore& store, Catalogue& catalogue, int64_t now_s,
    const std::function<bool()>& go_on = [] { return true; });

// Gives at most `most` bundles that were stored before there were receipts one
// from their rows.
[[nodiscard]] Status AddReceipts(BundleStore& store, const Catalogue& catalogue,
                                 size_t most);

}  // namespace clew::collector

#endif  // CLEW_COLLECTOR_SERVICE_INTAKE_H_
