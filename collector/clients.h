#ifndef CLEW_COLLECTOR_CLIENTS_H_
#define CLEW_COLLECTOR_CLIENTS_H_

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "collector/chunk_store.h"
#include "common/result.h"

namespace clew::collector {

// What is refused for the moment: the client tries again.
template <class... Args>
[[nodiscard]] std::unexpected<Error> TryLater(
    fmt::format_string<Args...> format, Args&&... args) {
  return std::unexpected(Error{ErrorCode::kSystem,
                               fmt::format(format, std::forward<Args>(args)...),
                               EAGAIN});
}

// What one host may cost the collector.
struct ClientLimits {
  size_t bundles_in_flight_max = 8;  // begun and not committed, a host
  size_t chunks_in_flight_max = 16;  // cut in the middle and kept, a host
  size_t hosts_in_flight_max = 4096;
  uint64_t keep_s = 600;  // of what nobody asked for in that time
  // A bundle begun this long ago makes way for another of its host.
  uint64_t give_way_s = 30;
};

// What hosts have begun and not finished, in memory only: after a restart a
// client begins again. Thread-safe.
class Clients {
 public:
  // `now_s` never goes back.
  Clients(const ClientLimits& limits, std::function<uint64_t()> now_s)
      : limits_(limits), now_s_(std::move(now_s)) {}

  // The bundle's chunks may be sent until Forget, or until nobody asked for
  // them for keep_s. kSystem (EAGAIN): too many are in flight; later.
  [[nodiscard]] Status Begin(const std::string& host, const FileList& list);
  // What Begin was given; nullopt: not begun, or forgotten.
  std::optional<FileList> Begun(const std::string& host, const BundleId& id);
  void Forget(const std::string& host, const BundleId& id);

  // The chunk as a bundle in flight of this host names it.
  std::optional<ChunkRef> Wanted(const std::string& host, const ChunkId& chunk);

  // An upload that Park was given; nullopt: none, or another call has it.
  std::optional<ChunkUpload> TakeParked(const std::string& host,
                                        const ChunkId& chunk);
  // Keeps what was received of a chunk; the oldest of the host makes way.
  void Park(const std::string& host, ChunkUpload upload);
  // Bytes of a parked chunk, 0: none.
  uint64_t ParkedBytes(const std::string& host, const ChunkId& chunk) const;

  // Forgets what nobody asked for lately.
  void Expire();
  // For figures.
  size_t bundles_in_flight() const;
  size_t chunks_parked() const;

 private:
  struct Bundle {
    FileList list;
    std::map<ChunkId, uint64_t> chunk_bytes;
    uint64_t asked_s = 0;
  };
  struct Parked {
    ChunkUpload upload;
    uint64_t since_s = 0;
  };
  struct Host {
    std::map<BundleId, Bundle> bundles;
    std::list<Parked> parked;  // oldest first
  };

  // Makes room for one bundle more; false: no room.
  bool MakeRoom(Host& host, uint64_t now_s) const;
  void ExpireHost(Host& host, uint64_t now_s, std::list<Parked>& ended) const;

  const ClientLimits limits_;
  const std::function<uint64_t()> now_s_;
  mutable std::mutex mutex_;  // never held while an upload ends: that is I/O
  std::map<std::string, Host> hosts_;
};

}  // namespace clew::collector

#endif  // CLEW_COLLECTOR_CLIENTS_H_
