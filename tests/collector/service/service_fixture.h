#ifndef CLEW_TESTS_COLLECTOR_SERVICE_SERVICE_FIXTURE_H_
#define CLEW_TESTS_COLLECTOR_SERVICE_SERVICE_FIXTURE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "collector/service/service.h"
#include "proto/collector.pb.h"
#include "tests/collector/samples.h"

namespace clew::collector {

// A service on a folder of its own, without the network; its clocks and the
// free space of its disk are the test's.
class ServiceFixture {
 public:
  // Limits may be changed before Open.
  Service::Options options;
  uint64_t budget_bytes = uint64_t{1} << 30;
  uint64_t host_bytes_per_day = uint64_t{1} << 30;
  uint64_t steady_s = 1000;
  int64_t wall_s = 1'700'000'000;
  uint64_t free_bytes = uint64_t{1} << 40;
  uint64_t committed = 0;  // calls of options.committed

  ServiceFixture();
  // Again: what a collector that was killed and started again does.
  void Open();

  Service& service() { return *service_; }
  BundleStore& store() { return *store_; }
  Catalogue& catalogue() { return *catalogue_; }
  ScheduleStore& schedules() { return *schedules_; }
  const std::string& folder() const { return folder_.path(); }

 private:
  TempFolder folder_;
  std::unique_ptr<BundleStore> store_;
  std::unique_ptr<Catalogue> catalogue_;
  std::unique_ptr<ScheduleStore> schedules_;
  std::unique_ptr<DailyUsage> usage_;
  std::unique_ptr<Service> service_;
};

// The bytes of a manifest that says `unit`, and that it was SIGABRT.
std::string ManifestBytes(const std::string& unit);
// A bundle of `own` bytes and an image of `shared` bytes.
Sample ServiceSample(const std::string& own, const std::string& shared);

pb::BeginRequest BeginOf(const FileList& list);
pb::PutPart PartOf(const ChunkRef& chunk, const std::string& bytes,
                   uint64_t offset, size_t size);
// Sends what Begin says is missing, in parts of `part_bytes`.
Status PutMissing(Service& service, const Caller& caller, const Sample& sample,
                  const pb::BeginReply& begun, size_t part_bytes = 1 << 20);
// Begin, PutMissing, Commit.
Status Upload(Service& service, const Caller& caller, const Sample& sample);
// All files of a bundle as Get sends them.
Result<Files> Download(Service& service, const Caller& caller,
                       const std::string& prefix, uint32_t first_chunk = 0);

}  // namespace clew::collector

#endif  // CLEW_TESTS_COLLECTOR_SERVICE_SERVICE_FIXTURE_H_
