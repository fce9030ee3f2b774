// Goal: the handlers of the protocol keep its promises: what is missing is
// sent once, a cut chunk goes on where it was, Commit makes a bundle and its
// row, a host sees its own; and whoever is refused is told what to do, with
// nothing disturbed.
// Method: pairs of call and outcome on a real store and catalogue, without the
// network; after each refusal the same good bundle must still go through.

#include "collector/service/service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "collector/service/intake.h"
#include "common/check.h"
#include "proto/bundle.pb.h"
#include "proto/collector_store.pb.h"
#include "tests/collector/service/service_fixture.h"
#include "transfer/protocol.h"

namespace clew::collector {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const Caller kWeb1{.host = "web1", .reads_all = false};
const Caller kWeb2{.host = "web2", .reads_all = false};
const Caller kReader{.host = "desk", .reads_all = true};

class ServiceTest : public testing::Test, public ServiceFixture {
 protected:
  // Another, good bundle goes through, and is listed.
  void ExpectUndisturbed() {
    const Sample good = ServiceSample("good", "shared");
    const Status sent = Upload(service(), kWeb2, good);
    EXPECT_TRUE(sent) << sent.error().message;
    EXPECT_TRUE(store().ReadList(good.list.id()).has_value());
    EXPECT_TRUE(store().Check().faults.empty());
  }
  // REQUIRES: the catalogue has it.
  BundleRow RowOf(const BundleId& id) {
    const auto asked = catalogue().Bundle(id);
    const auto row = asked ? *asked : std::nullopt;
    CLEW_CHECK(row, "no row of {}", id.hex());
    return *row;
  }
  // The refusal of `list`, begun by web1.
  Error Refused(const FileList& list) {
    const auto begun = service().Begin(kWeb1, BeginOf(list));
    EXPECT_FALSE(begun.has_value());
    return begun ? Error{} : begun.error();
  }
};

TEST_F(ServiceTest, AnUploadedBundleIsStoredDescribedAndFetched) {
  Open();
  const Sample sample = ServiceSample("own", std::string(5'000'000, 's'));
  const Status sent = Upload(service(), kWeb1, sample);
  ASSERT_TRUE(sent) << sent.error().message;
  EXPECT_EQ(committed, 1u);
  const auto list = service().List(kWeb1, {});
  ASSERT_TRUE(list.has_value()) << list.error().message;
  ASSERT_EQ(list->bundles_size(), 1);
  const pb::StoredBundle& row = list->bundles(0);
  EXPECT_EQ(row.host(), "web1");
  EXPECT_EQ(row.unit(), "web.service");
  EXPECT_EQ(row.command(), "./server --fast");
  EXPECT_EQ(row.source(), "qemu");
  EXPECT_EQ(row.failure(), "signal 6 (SIGABRT)");
  EXPECT_EQ(row.recorded_at_s(), 1'600'000'000);
  EXPECT_EQ(row.received_at_s(), wall_s);
  EXPECT_EQ(row.size_bytes(), sample.list.size_bytes());
  EXPECT_EQ(row.sufficiency(), 77u);
  auto files = Download(service(), kWeb1, sample.list.id().hex().substr(0, 8));
  ASSERT_TRUE(files.has_value()) << files.error().message;
  files->erase("");
  EXPECT_EQ(*files, sample.files);
}

// Of a bundle whose run has no failure of its own.
TEST_F(ServiceTest, ATriggerIsShownWhereThereIsNoFailure) {
  Open();
  constexpr int kNoKind = pb::Trigger::Kind_MAX + 1;
  const auto shown = [this](int kind) {
    pb::Manifest manifest;
    manifest.mutable_trigger()->set_kind(static_cast<pb::Trigger::Kind>(kind));
    const Sample sample({{"manifest.pb", manifest.SerializeAsString()},
                         {"perf.data", "trace"}});
    const Status sent = Upload(service(), kWeb1, sample);
    EXPECT_TRUE(sent) << sent.error().message;
    return RowOf(sample.list.id()).failure;
  };
  EXPECT_EQ(shown(pb::Trigger::KIND_UNIT_FAILED), "the unit failed");
  EXPECT_EQ(shown(pb::Trigger::KIND_REQUEST), "snapshot");
  for (const int kind :
       {int{pb::Trigger::KIND_UNKNOWN}, int{pb::Trigger::KIND_CORE},
        int{pb::Trigger::KIND_HANG}, kNoKind}) {
    EXPECT_EQ(shown(kind), "none") << kind;
  }
}

TEST_F(ServiceTest, ASecondBundleOfTheSameProgramSendsItsOwnChunksOnly) {
  Open();
  ASSERT_TRUE(Upload(service(), kWeb1, ServiceSample("one", "image")));
  const auto begun =
      service().Begin(kWeb2, BeginOf(ServiceSample("two", "image").list));
  ASSERT_TRUE(begun.has_value());
  EXPECT_EQ(begun->missing_size(), 1);
  EXPECT_FALSE(begun->stored());
}

TEST_F(ServiceTest, TheSameBundleTwiceIsStoredOnce) {
  Open();
  const Sample sample = ServiceSample("own", "image");
  ASSERT_TRUE(Upload(service(), kWeb1, sample));
  const auto again = service().Begin(kWeb2, BeginOf(sample.list));
  ASSERT_TRUE(again.has_value());
  EXPECT_TRUE(again->stored());
  EXPECT_EQ(store().List().size(), 1u);
  EXPECT_EQ(committed, 1u);
}

TEST_F(ServiceTest, AChunkCutInTheMiddleGoesOnWhereItWas) {
  Open();
  const Sample sample = ServiceSample("own", std::string(3'000'000, 's'));
  ASSERT_TRUE(service().Begin(kWeb1, BeginOf(sample.list)));
  const FileEntry& image = sample.list.files()[0];
  ASSERT_EQ(image.path, "images/c0ffee/libstdc++.so.6");
  const ChunkRef chunk = image.chunk(0);
  const std::string& bytes = sample.chunks.at(chunk.id);
  {
    Service::PutSession cut(service(), kWeb1);
    ASSERT_TRUE(cut.Put(PartOf(chunk, bytes, 0, 1'000'000)));
  }
  const auto begun = service().Begin(kWeb1, BeginOf(sample.list));
  ASSERT_TRUE(begun.has_value());
  uint64_t received = 0;
  for (const pb::MissingChunk& missing : begun->missing()) {
    received += missing.received_bytes();
  }
  EXPECT_EQ(received, 1'000'000u);
  EXPECT_TRUE(PutMissing(service(), kWeb1, sample, *begun));
  // Not one byte came twice.
  EXPECT_EQ(service().counts().bytes_received, sample.list.size_bytes());
}

TEST_F(ServiceTest, ALostCatalogueIsMadeAgainAndTheHostComesBack) {
  Open();
  const Sample sample = ServiceSample("own", "image");
  ASSERT_TRUE(Upload(service(), kWeb1, sample));
  const BundleId id = sample.list.id();
  ASSERT_TRUE(catalogue().Remove(id));
  const BundleId stranger(Sha256::Value{});
  const auto described =
      Describe(store().chunks(), sample.list, "web9", wall_s);
  ASSERT_TRUE(described.has_value());
  NewBundle gone = *described;
  gone.id = stranger;
  ASSERT_TRUE(catalogue().Add(gone));
  const auto done = Reconcile(store(), catalogue(), wall_s);
  ASSERT_TRUE(done.has_value()) << done.error().message;
  EXPECT_EQ(done->added, 1u);
  EXPECT_EQ(done->removed, 1u);
  const BundleRow found = RowOf(id);
  EXPECT_EQ(found.host, "web1");
  EXPECT_EQ(found.received_at_s, wall_s);
  EXPECT_EQ(found.unit, "web.service");
  ASSERT_TRUE(service().Begin(kWeb2, BeginOf(sample.list)));
  EXPECT_EQ(RowOf(id).host, "web1") << "the first stays its owner";
}

// As they were stored before there were receipts.
TEST_F(ServiceTest, ABundleWithoutAReceiptGetsOneFromItsRow) {
  Open();
  const Sample sample = ServiceSample("own", "image");
  ASSERT_TRUE(Upload(service(), kWeb1, sample));
  const BundleId id = sample.list.id();
  const std::string path = folder() + "/data/bundles/" + id.hex() + ".pb";
  const auto with_receipt = ReadWholeFile(path);
  ASSERT_TRUE(WriteWholeFile(PosixFileSystem(), path, sample.list.Encode()));
  Open();
  EXPECT_FALSE(store().ReadReceipt(id)->has_value());
  ASSERT_TRUE(service().Housekeeping());
  EXPECT_EQ(*ReadWholeFile(path), *with_receipt);
  EXPECT_EQ(*store().ReadReceipt(id),
            (Receipt{.host = "web1", .received_at_s = wall_s}));
  // Without row and receipt nobody knows whose it is.
  ASSERT_TRUE(catalogue().Remove(id));
  ASSERT_TRUE(WriteWholeFile(PosixFileSystem(), path, sample.list.Encode()));
  Open();
  ASSERT_TRUE(Reconcile(store(), catalogue(), wall_s).has_value());
  ASSERT_TRUE(service().Housekeeping());
  EXPECT_EQ(RowOf(id).host, kHostNotKnown);
  // The client never heard that it was stored, and sends it again.
  ASSERT_TRUE(service().Begin(kWeb1, BeginOf(sample.list)));
  EXPECT_EQ(RowOf(id).host, "web1");
}

TEST_F(ServiceTest, EngineersAloneDeleteAndCheckAndAllIsAudited) {
  const Caller engineer{.host = "ann", .reads_all = true, .engineer = true};
  std::string audit;
  options.audit = [&](const AuditEvent& event) {
    EXPECT_EQ(event.of, "bundle");
    audit += fmt::format("{} {} {}\n", event.what, event.caller.host,
                         event.id.substr(0, 4));
  };
  Open();
  const Sample first = ServiceSample("first", "libc");
  const Sample second = ServiceSample("second", "libc");
  ASSERT_TRUE(Upload(service(), kWeb1, first));
  ASSERT_TRUE(Upload(service(), kWeb2, second));
  ASSERT_TRUE(Upload(service(), kWeb2, second)) << "nothing new";
  const std::string id = first.list.id().hex();
  ASSERT_TRUE(schedules().Put(first.list.id(), Bytes("schedule")));
  pb::DeleteRequest remove;
  remove.set_id(id.substr(0, 12));
  pb::CheckRequest check;
  check.set_id(id.substr(0, 12));
  for (const Caller& caller : {kWeb1, kWeb2, kReader}) {
    const auto removed = service().Delete(caller, remove);
    ASSERT_FALSE(removed.has_value()) << caller.host;
    EXPECT_EQ(removed.error().code, ErrorCode::kUnsupported);
    EXPECT_THAT(removed.error().message, HasSubstr("'engineers'"));
    EXPECT_FALSE(service().Check(caller, check).has_value());
  }
  EXPECT_EQ(service().Check(engineer, check)->faults_size(), 0);
  ASSERT_TRUE(Download(service(), kReader, id).has_value());
  ASSERT_TRUE(service().Delete(engineer, remove).has_value());
  EXPECT_FALSE(service().Delete(engineer, remove).has_value());
  EXPECT_FALSE(Download(service(), kReader, id).has_value());
  EXPECT_FALSE(*catalogue().Bundle(first.list.id()));
  EXPECT_FALSE(*schedules().Read(first.list.id()));
  for (const auto& [name, bytes] : ReadFiles(folder() + "/data")) {
    EXPECT_NE(bytes, "first") << name;
  }
  EXPECT_TRUE(Download(service(), kWeb2, second.list.id().hex()).has_value());
  const std::string one = id.substr(0, 4);
  const std::string two = second.list.id().hex().substr(0, 4);
  EXPECT_EQ(audit, "committed web1 " + one + "\ncommitted web2 " + two +
                       "\nchecked ann " + one + "\nfetched desk " + one +
                       "\ndeleted ann " + one + "\nfetched web2 " + two + "\n");
}

// Of a day ago, whatever it was since: nobody is told that a chunk need not be
// sent that was not read since.
TEST_F(ServiceTest, WhatRottedSinceIsAskedForAndNamedUntilThen) {
  Open();
  const Sample old = ServiceSample("old", "libc");
  const Sample fresh = ServiceSample("new", "libc");
  ASSERT_TRUE(Upload(service(), kWeb1, old));
  const ChunkRef libc = old.list.files()[0].chunk(0);
  ASSERT_EQ(old.chunks.at(libc.id), "libc");
  for (const bool restart : {false, true}) {
    const std::string path = store().chunks().PathOf(libc.id);
    std::filesystem::remove(path);
    WriteFiles("/", {{path, "libd"}});
    steady_s += ChunkStore::kTrust_s;
    if (restart) {
      Open();
    }
    const auto begun = service().Begin(kWeb1, BeginOf(fresh.list));
    ASSERT_TRUE(begun.has_value()) << begun.error().message;
    EXPECT_FALSE(begun->stored());
    EXPECT_EQ(begun->missing_size(), restart ? 1 : 2);
    const auto listed = service().List(kWeb1, {});
    EXPECT_TRUE(listed->bundles(0).damaged());
    EXPECT_FALSE(Download(service(), kWeb1, old.list.id().hex()).has_value());
    ASSERT_TRUE(Upload(service(), kWeb1, fresh));
    EXPECT_FALSE(service().List(kWeb1, {})->bundles(0).damaged());
    for (const Sample* sample : {&old, &fresh}) {
      auto files = Download(service(), kWeb1, sample->list.id().hex());
      ASSERT_TRUE(files.has_value()) << files.error().message;
      files->erase("");
      EXPECT_EQ(*files, sample->files);
    }
  }
}

TEST_F(ServiceTest, AHostSeesItsOwnBundlesAndAReaderAll) {
  Open();
  const Sample one = ServiceSample("one", "image");
  const Sample two = ServiceSample("two", "image");
  ASSERT_TRUE(Upload(service(), kWeb1, one));
  ASSERT_TRUE(Upload(service(), kWeb2, two));
  EXPECT_EQ(service().List(kWeb1, {})->total(), 1u);
  EXPECT_EQ(service().List(kReader, {})->total(), 2u);
  pb::ListRequest of_web2;
  of_web2.set_host("web2");
  EXPECT_EQ(service().List(kReader, of_web2)->total(), 1u);
  const auto refused = service().List(kWeb1, of_web2);
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().message, HasSubstr("'readers'"));
  EXPECT_TRUE(Download(service(), kReader, one.list.id().hex()).has_value());
  const auto foreign = Download(service(), kWeb2, one.list.id().hex());
  ASSERT_FALSE(foreign.has_value());
  EXPECT_THAT(foreign.error().message, HasSubstr("no bundle that host"));
}

TEST_F(ServiceTest, AFetchedBundleHasTheScheduleThatTheCollectorFound) {
  Open();
  const Sample sample = ServiceSample("own", "image");
  ASSERT_TRUE(Upload(service(), kWeb1, sample));
  ASSERT_TRUE(schedules().Put(sample.list.id(), Bytes("a schedule")));
  const auto files = Download(service(), kWeb1, sample.list.id().hex());
  ASSERT_TRUE(files.has_value()) << files.error().message;
  EXPECT_EQ(files->at("schedule.pb"), "a schedule");
}

TEST_F(ServiceTest, AFetchGoesOnBehindTheChunksThatCame) {
  Open();
  const Sample sample = ServiceSample("own", std::string(kChunkBytes + 7, 'i'));
  ASSERT_TRUE(Upload(service(), kWeb1, sample));
  const auto all = Download(service(), kWeb1, sample.list.id().hex());
  const auto rest = Download(service(), kWeb1, sample.list.id().hex(), 1);
  ASSERT_TRUE(all.has_value() && rest.has_value());
  EXPECT_EQ(rest->at(""), all->at("").substr(kChunkBytes));
}

TEST_F(ServiceTest, IdsThatNameNoneOrSeveralBundlesAreRefused) {
  Open();
  ASSERT_TRUE(Upload(service(), kWeb1, ServiceSample("own", "image")));
  for (const char* id : {"", "abc", "../../etc/passwd", "ABCDEF", "zzzz",
                         "00000000000000000000000000"}) {
    const auto got = Download(service(), kWeb1, id);
    ASSERT_FALSE(got.has_value()) << id;
    EXPECT_EQ(got.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(got.error().message, HasSubstr("clew list"));
  }
}

TEST_F(ServiceTest, AnotherVersionIsToldWhatToInstall) {
  Open();
  pb::HelloRequest request;
  request.set_client("clew 9.0");
  request.set_protocol_min(2);
  request.set_protocol_max(3);
  const auto newer = service().Hello(kWeb1, request);
  ASSERT_FALSE(newer.has_value());
  EXPECT_EQ(newer.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(newer.error().message, HasSubstr("newer clew-collector"));
  request.set_protocol_min(0);
  request.set_protocol_max(0);
  const auto older = service().Hello(kWeb1, request);
  ASSERT_FALSE(older.has_value());
  EXPECT_THAT(older.error().message, HasSubstr("newer clew on this host"));
  request.set_protocol_max(7);
  const auto good = service().Hello(kWeb1, request);
  ASSERT_TRUE(good.has_value());
  EXPECT_EQ(good->protocol(), transfer::kProtocol);
  EXPECT_EQ(good->host(), "web1");
  EXPECT_TRUE(service().CheckProtocol("1"));
  EXPECT_FALSE(service().CheckProtocol("2"));
  EXPECT_FALSE(service().CheckProtocol(std::nullopt));
  ExpectUndisturbed();
}

TEST_F(ServiceTest, AFullStoreRefusesAtBegin) {
  budget_bytes = 2'000'000;
  Open();
  const Error error =
      Refused(ServiceSample("own", std::string(3'000'000, 's')).list);
  EXPECT_EQ(error.code, ErrorCode::kLimit);
  EXPECT_THAT(error.message,
              AllOf(HasSubstr("store is full"), HasSubstr("store_bytes_max")));
  ExpectUndisturbed();
}

TEST_F(ServiceTest, AFullDiskRefusesAtBegin) {
  options.disk_free_bytes_min = 1000;
  Open();
  free_bytes = 1005;
  const Error error =
      Refused(ServiceSample("own", std::string(3'000, 's')).list);
  EXPECT_EQ(error.code, ErrorCode::kLimit);
  EXPECT_THAT(error.message,
              AllOf(HasSubstr("disk is full"), HasSubstr("make room")));
  free_bytes = 10'000;
  ExpectUndisturbed();
}

TEST_F(ServiceTest, AHostsQuotaHoldsForItAloneAndUntilTomorrow) {
  host_bytes_per_day = 3'000;
  Open();
  ASSERT_TRUE(
      Upload(service(), kWeb1, ServiceSample("a", std::string(2'000, 'a'))));
  const Sample more = ServiceSample("b", std::string(2'000, 'b'));
  const Error error = Refused(more.list);
  EXPECT_EQ(error.code, ErrorCode::kLimit);
  EXPECT_THAT(error.message, AllOf(HasSubstr("quota exceeded: host \"web1\""),
                                   HasSubstr("host_bytes_per_day")));
  ExpectUndisturbed();
  // Not forgotten by a restart.
  ASSERT_TRUE(service().Housekeeping());
  Open();
  EXPECT_EQ(Refused(more.list).code, ErrorCode::kLimit);
  wall_s += 24 * 60 * 60;
  EXPECT_TRUE(Upload(service(), kWeb1, more));
}

TEST_F(ServiceTest, ADamagedUsageFileIsNamedAndWhatCanBeReadCounts) {
  Open();
  const std::string path = folder() + "/data/usage";
  const auto open = [&] {
    auto usage = DailyUsage::Open(
        PosixFileSystem(),
        {.path = path, .limit_bytes = 20, .now_s = [this] { return wall_s; }});
    CLEW_CHECK(usage.has_value(), "{}", usage.error().message);
    return *std::move(usage);
  };
  const std::string head = fmt::format("clew usage 1 {}\n", wall_s / 86400);
  for (const std::string& text :
       {std::string(), std::string("clew usage 1 x\n"), head + "12\n",
        head + "12 web1", std::string("\0\0\0", 3)}) {
    std::ofstream(path) << text;
    const auto usage = open();
    EXPECT_THAT(usage->damage(), HasSubstr("data/usage")) << text;
    EXPECT_EQ(usage->LeftToday("web1"), 20u);
    ASSERT_TRUE(usage->Save());
    EXPECT_EQ(open()->damage(), "") << "it is whole again";
  }
  std::ofstream(path) << head << "12 web1\n5 we";
  const auto usage = open();
  EXPECT_NE(usage->damage(), "");
  EXPECT_EQ(usage->LeftToday("web1"), 8u);
  EXPECT_EQ(usage->LeftToday("we"), 20u) << "a cut name is none";
}

TEST_F(ServiceTest, TheQuotaAlsoEndsAPutThatBeganBelowIt) {
  host_bytes_per_day = 3'000;
  Open();
  const Sample a = ServiceSample("a", std::string(2'000, 'a'));
  const Sample b = ServiceSample("b", std::string(2'000, 'b'));
  const auto begun_a = service().Begin(kWeb1, BeginOf(a.list));
  const auto begun_b = service().Begin(kWeb1, BeginOf(b.list));
  ASSERT_TRUE(begun_a.has_value() && begun_b.has_value());
  EXPECT_TRUE(PutMissing(service(), kWeb1, a, *begun_a));
  const Status put = PutMissing(service(), kWeb1, b, *begun_b);
  ASSERT_FALSE(put);
  EXPECT_EQ(put.error().code, ErrorCode::kLimit);
  EXPECT_THAT(put.error().message, HasSubstr("quota exceeded"));
  ExpectUndisturbed();
}

// A list of one file that claims a size or a path.
std::string ListClaiming(const std::string& path, uint64_t size_bytes) {
  pb::FileList list;
  list.set_format_version(1);
  for (const std::string& name :
       {path, std::string("manifest.pb"), std::string("perf.data")}) {
    auto* file = list.add_files();
    file->set_path(name);
    const uint64_t bytes = name == path ? size_bytes : 0;
    file->set_size_bytes(bytes);
    file->set_chunk_digests(
        std::string((bytes + kChunkBytes - 1) / kChunkBytes * 32, 'd'));
  }
  return list.SerializeAsString();
}

TEST_F(ServiceTest, TenGigabytesClaimedAreRefusedWithoutAByteStored) {
  Open();
  pb::BeginRequest request;
  request.set_files(ListClaiming("core", uint64_t{10} << 30));
  const auto begun = service().Begin(kWeb1, request);
  ASSERT_FALSE(begun.has_value());
  EXPECT_EQ(begun.error().code, ErrorCode::kLimit);
  EXPECT_THAT(begun.error().message, HasSubstr("record less"));
  EXPECT_EQ(store().used_bytes(), 0u);
  ExpectUndisturbed();
}

TEST_F(ServiceTest, AMaliciousPathIsRefusedByName) {
  Open();
  for (const char* path :
       {"../escape", "/etc/passwd", "images/../../x", "images/c0ffee/..",
        "images/c0ffee/a/b", "corE", "core\n", "images/C0FFEE/a", "-rf"}) {
    pb::BeginRequest request;
    request.set_files(ListClaiming(path, 5));
    const auto begun = service().Begin(kWeb1, request);
    ASSERT_FALSE(begun.has_value()) << path;
    EXPECT_EQ(begun.error().code, ErrorCode::kInvalidArgument) << path;
    EXPECT_THAT(begun.error().message, HasSubstr("is no file of a bundle"));
  }
  EXPECT_EQ(store().used_bytes(), 0u);
  ExpectUndisturbed();
}

TEST_F(ServiceTest, AChunkOfOtherBytesIsRefusedAndMayBeSentAgain) {
  Open();
  const Sample sample = ServiceSample("own", "image");
  const auto begun = service().Begin(kWeb1, BeginOf(sample.list));
  ASSERT_TRUE(begun.has_value());
  const ChunkRef chunk = sample.list.files()[0].chunk(0);
  {
    Service::PutSession session(service(), kWeb1);
    const auto put = session.Put(PartOf(chunk, "IMAGE", 0, 5));
    ASSERT_FALSE(put.has_value());
    EXPECT_EQ(put.error().code, ErrorCode::kCorruptInput);
    EXPECT_THAT(put.error().message, HasSubstr("send it again"));
  }
  EXPECT_TRUE(Upload(service(), kWeb1, sample));
  ExpectUndisturbed();
}

TEST_F(ServiceTest, PartsThatMakeNoSenseAreRefused) {
  Open();
  const Sample sample = ServiceSample("own", "image");
  ASSERT_TRUE(service().Begin(kWeb1, BeginOf(sample.list)));
  const ChunkRef chunk = sample.list.files()[0].chunk(0);
  const pb::PutPart good = PartOf(chunk, "image", 0, 5);
  const auto refused = [&](const pb::PutPart& part) {
    Service::PutSession session(service(), kWeb1);
    const auto put = session.Put(part);
    return put ? "taken" : put.error().message;
  };
  pb::PutPart part = good;
  part.set_chunk("short");
  EXPECT_THAT(refused(part), HasSubstr("has 5 bytes, wanted 32"));
  part = good;
  part.set_data("");
  EXPECT_THAT(refused(part), HasSubstr("part of 0 bytes"));
  part.set_data(std::string(options.part_bytes_max + 1, 'x'));
  EXPECT_THAT(refused(part), HasSubstr("wanted 1.."));
  part = good;
  part.set_offset(UINT64_MAX - 2);
  EXPECT_THAT(refused(part), HasSubstr("at offset 18446744073709551613"));
  part.set_offset(3);
  EXPECT_THAT(refused(part), HasSubstr("send from there"));
  part = good;
  part.set_data("image, and more");
  EXPECT_THAT(refused(part), HasSubstr("the chunk has 5 bytes"));
  ExpectUndisturbed();
}

TEST_F(ServiceTest, ChunksOfNoBundleAndCommitsOfNoneAreOfTheMoment) {
  Open();
  const Sample sample = ServiceSample("own", "image");
  const ChunkRef chunk = sample.list.files()[0].chunk(0);
  // Begun by another host is not begun.
  ASSERT_TRUE(service().Begin(kWeb2, BeginOf(sample.list)));
  Service::PutSession session(service(), kWeb1);
  const auto put = session.Put(PartOf(chunk, "image", 0, 5));
  ASSERT_FALSE(put.has_value());
  EXPECT_EQ(put.error().code, ErrorCode::kSystem);
  pb::CommitRequest commit;
  commit.set_bundle(std::string(32, 'x'));
  const auto committing = service().Commit(kWeb1, commit);
  ASSERT_FALSE(committing.has_value());
  EXPECT_EQ(committing.error().code, ErrorCode::kSystem);
  EXPECT_THAT(committing.error().message, HasSubstr("begin again"));
}

TEST_F(ServiceTest, CommitSaysWhatIsMissing) {
  Open();
  const Sample sample = ServiceSample("own", "image");
  const auto begun = service().Begin(kWeb1, BeginOf(sample.list));
  ASSERT_TRUE(begun.has_value());
  pb::CommitRequest commit;
  commit.set_bundle(begun->bundle());
  const auto early = service().Commit(kWeb1, commit);
  ASSERT_TRUE(early.has_value());
  EXPECT_EQ(early->missing_size(), begun->missing_size());
  EXPECT_TRUE(store().List().empty());
  EXPECT_EQ(service().List(kReader, {})->total(), 0u);
}

TEST_F(ServiceTest, WhatHasNoManifestNeverBecomesABundle) {
  Open();
  const Sample sample(
      {{"manifest.pb", "\xff\xff no manifest"}, {"perf.data", "own"}});
  const Status sent = Upload(service(), kWeb1, sample);
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, ErrorCode::kCorruptInput);
  EXPECT_THAT(sent.error().message, HasSubstr("is no manifest"));
  EXPECT_TRUE(store().List().empty());
  ExpectUndisturbed();
}

TEST_F(ServiceTest, AHostHasSoManyBundlesInFlightAndOldOnesMakeWay) {
  options.clients.bundles_in_flight_max = 2;
  Open();
  for (const char* own : {"a", "b"}) {
    ASSERT_TRUE(service().Begin(kWeb1, BeginOf(ServiceSample(own, "i").list)));
  }
  const FileList third = ServiceSample("c", "i").list;
  const Error error = Refused(third);
  EXPECT_EQ(error.code, ErrorCode::kSystem) << "of the moment";
  EXPECT_THAT(error.message, HasSubstr("2 bundles in flight"));
  ExpectUndisturbed();
  steady_s += options.clients.give_way_s;
  EXPECT_TRUE(service().Begin(kWeb1, BeginOf(third)).has_value());
  EXPECT_EQ(service().clients().bundles_in_flight(), 2u);
}

TEST_F(ServiceTest, WhatAClientLeftBehindIsForgottenAndItsBytesComeBack) {
  Open();
  const Sample sample = ServiceSample("own", std::string(3'000'000, 's'));
  ASSERT_TRUE(service().Begin(kWeb1, BeginOf(sample.list)));
  const ChunkRef chunk = sample.list.files()[0].chunk(0);
  {
    Service::PutSession cut(service(), kWeb1);
    ASSERT_TRUE(
        cut.Put(PartOf(chunk, sample.chunks.at(chunk.id), 0, 1'000'000)));
  }
  EXPECT_EQ(service().clients().chunks_parked(), 1u);
  EXPECT_EQ(store().used_bytes(), chunk.size_bytes);
  steady_s += options.clients.keep_s;
  ASSERT_TRUE(service().Housekeeping());
  EXPECT_EQ(service().clients().chunks_parked(), 0u);
  EXPECT_EQ(service().clients().bundles_in_flight(), 0u);
  EXPECT_EQ(store().used_bytes(), 0u);
}

TEST_F(ServiceTest, AListHasALimit) {
  Open();
  pb::ListRequest request;
  request.set_limit(1001);
  const auto list = service().List(kReader, request);
  ASSERT_FALSE(list.has_value());
  EXPECT_THAT(list.error().message, HasSubstr("at most 1000"));
}

TEST_F(ServiceTest, AReportIsOfWhoeverCalls) {
  Open();
  CLEW_CHECK(Catalogue::Open(folder() + "/hosts.sqlite").has_value(), "");
  const auto table = HostTable::Open(folder() + "/hosts.sqlite");
  ASSERT_TRUE(table.has_value());
  pb::ReportRequest request;
  request.set_version("0.1.0");
  request.set_stuck(2);
  // Where reports are not kept.
  EXPECT_TRUE(service().Report(kWeb1, request).has_value());
  options.hosts = table->get();
  Open();
  EXPECT_TRUE(service().Report(kWeb1, request).has_value());
  EXPECT_TRUE(service().Report(kWeb2, request).has_value());
  const auto page = (*table)->Hosts({}, wall_s);
  ASSERT_EQ(page->rows.size(), 2u);
  EXPECT_EQ(page->rows[0].host, "web1");
  EXPECT_EQ(page->rows[0].stuck, 2u);
  EXPECT_EQ(page->rows[0].seen_s, wall_s);
  EXPECT_EQ(page->rows[1].host, "web2");
}

}  // namespace
}  // namespace clew::collector
