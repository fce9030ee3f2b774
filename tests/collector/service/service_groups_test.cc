// Goal: readers see groups and hosts, engineers alone change groups, each
// change is audited and may be repeated; what is not a plain line is refused
// whole. Method: hand-picked calls of the handlers on a real catalogue, all
// sizes of texts around their limits, and bytes that are not text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collector/service/service.h"
#include "tests/collector/catalogue/catalogue_model.h"
#include "tests/collector/service/service_fixture.h"

namespace clew::collector {
namespace {

using pb::ChangeGroupRequest;
using testing::HasSubstr;

const Caller kHost{.host = "web1"};
const Caller kDesk{.host = "desk", .reads_all = true};
const Caller kEngineer{.host = "ann",
                       .reads_all = true,
                       .engineer = true,
                       .peer = "ipv4:10.0.0.7"};

class ServiceGroupsTest : public testing::Test, public ServiceFixture {
 protected:
  ServiceGroupsTest() {
    options.audit = [this](const AuditEvent& event) {
      audit_ += fmt::format("{} {} {} {} {} {}\n", event.what,
                            event.caller.host, event.caller.peer, event.of,
                            event.id == SignatureOf(1) ? "1" : event.id,
                            event.version);
    };
    Open();
    auto hosts = HostTable::Open(folder() + "/data/catalogue.sqlite");
    EXPECT_TRUE(hosts.has_value());
    hosts_ = *std::move(hosts);
    options.hosts = hosts_.get();
    Open();
  }

  // A bundle of a group, in a version of its program, received now.
  void Send(uint64_t group, const std::string& version) {
    SendTo(SignatureOf(group), version);
  }
  void SendTo(const std::string& signature, const std::string& version) {
    NewBundle bundle = BundleOf(++sent_);
    bundle.recorded_at_s = bundle.received_at_s = ++wall_s;
    ASSERT_TRUE(catalogue().Add(bundle));
    ASSERT_TRUE(catalogue().SetAnalysis(bundle.id, {.signature = signature,
                                                    .title = "bank: SIGABRT",
                                                    .backtraces = "{}",
                                                    .program = "bank",
                                                    .version = version}));
  }
  static ChangeGroupRequest RequestFor(
      uint64_t group,
      ChangeGroupRequest::Change change = ChangeGroupRequest::CHANGE_RESOLVE) {
    ChangeGroupRequest request;
    request.set_id(SignatureOf(group));
    request.set_change(change);
    return request;
  }
  // As an engineer, a second later.
  pb::Group Change(const ChangeGroupRequest& request) {
    ++wall_s;
    const auto reply = service().ChangeGroup(kEngineer, request);
    EXPECT_TRUE(reply.has_value()) << reply.error().message;
    return reply ? reply->group() : pb::Group();
  }
  pb::Group Resolve(const std::string& version = "") {
    ChangeGroupRequest request = RequestFor(1);
    request.set_version(version);
    return Change(request);
  }
  pb::Group Shown(const std::string& id) {
    pb::GetGroupRequest request;
    request.set_id(id);
    const auto reply = service().GetGroup(kDesk, request);
    EXPECT_TRUE(reply.has_value()) << reply.error().message;
    return reply ? reply->group() : pb::Group();
  }
  // Of a change that is refused; nothing is audited.
  Error Refused(const ChangeGroupRequest& request,
                const Caller& caller = kEngineer) {
    const std::string before = audit_;
    const auto reply = service().ChangeGroup(caller, request);
    EXPECT_FALSE(reply.has_value());
    EXPECT_EQ(audit_, before);
    return reply ? Error{} : reply.error();
  }

  std::unique_ptr<HostTable> hosts_;
  std::string audit_;
  uint64_t sent_ = 0;
};

TEST_F(ServiceGroupsTest, EngineersAloneChangeAndReadersSee) {
  Send(1, "aaaa");
  for (const Caller& caller : {kHost, kDesk}) {
    const Error refused = Refused(RequestFor(1), caller);
    EXPECT_EQ(refused.code, ErrorCode::kUnsupported);
    EXPECT_THAT(refused.message, HasSubstr("may not change groups"));
    EXPECT_THAT(refused.message, HasSubstr("'engineers'"));
  }
  EXPECT_FALSE(Shown(SignatureOf(1)).resolved());
  pb::GetGroupRequest get;
  get.set_id(SignatureOf(1));
  EXPECT_EQ(service().GetGroup(kHost, get).error().code,
            ErrorCode::kUnsupported);
  EXPECT_EQ(service().ListGroups(kHost, {}).error().code,
            ErrorCode::kUnsupported);
  const auto hosts = service().ListHosts(kHost, {});
  ASSERT_FALSE(hosts.has_value());
  EXPECT_THAT(hosts.error().message, HasSubstr("'readers'"));
}

TEST_F(ServiceGroupsTest, AChangeIsKeptAuditedAndMayBeRepeated) {
  Send(1, "aaaa");
  ChangeGroupRequest request = RequestFor(1);
  request.set_note("see #12");
  const pb::Group resolved = Change(request);
  EXPECT_TRUE(resolved.resolved());
  EXPECT_EQ(resolved.note(), "see #12");
  EXPECT_EQ(resolved.changed_by(), "ann");
  EXPECT_EQ(resolved.changed_at_s(), wall_s);
  EXPECT_EQ(resolved.first_version(), "aaaa");
  EXPECT_TRUE(Resolve().resolved());
  Open();  // it is kept
  EXPECT_EQ(Shown(SignatureOf(1)).note(), "see #12");
  const auto reopen = RequestFor(1, ChangeGroupRequest::CHANGE_REOPEN);
  EXPECT_FALSE(Change(reopen).resolved());
  EXPECT_FALSE(Change(reopen).resolved());
  ChangeGroupRequest note = RequestFor(1, ChangeGroupRequest::CHANGE_NONE);
  note.set_note("");
  EXPECT_EQ(Change(note).note(), "");
  EXPECT_EQ(Resolve("bb").resolved_in(), "bb");
  EXPECT_EQ(audit_,
            "resolved ann ipv4:10.0.0.7 group 1 \n"
            "noted ann ipv4:10.0.0.7 group 1 \n"
            "resolved ann ipv4:10.0.0.7 group 1 \n"
            "reopened ann ipv4:10.0.0.7 group 1 \n"
            "reopened ann ipv4:10.0.0.7 group 1 \n"
            "noted ann ipv4:10.0.0.7 group 1 \n"
            "resolved ann ipv4:10.0.0.7 group 1 bb\n");
}

// A call that was repeated since its reply was lost must not make the collector
// deaf to what came in between.
TEST_F(ServiceGroupsTest, ARepeatedResolutionForgivesNoVersionSeenSince) {
  Send(1, "aaaa");
  EXPECT_TRUE(Resolve().resolved());
  Send(2, "bbbb");  // the same program fails otherwise
  EXPECT_TRUE(Resolve().resolved());
  Send(1, "bbbb");
  EXPECT_FALSE(Shown(SignatureOf(1)).resolved());
  EXPECT_EQ(Shown(SignatureOf(1)).reopened_in(), "bbbb");
  EXPECT_TRUE(Resolve().resolved());
  EXPECT_EQ(Shown(SignatureOf(1)).reopened_in(), "");
}

TEST_F(ServiceGroupsTest, ANoteOnAResolvedGroupForgivesNoBundleOnItsWay) {
  Send(1, "aaaa");
  EXPECT_TRUE(Resolve().resolved());
  NewBundle late = BundleOf(90);  // received, and not analysed yet
  late.received_at_s = ++wall_s;
  ASSERT_TRUE(catalogue().Add(late));
  ChangeGroupRequest note = RequestFor(1, ChangeGroupRequest::CHANGE_NONE);
  note.set_note("waits for the release");
  EXPECT_TRUE(Change(note).resolved());
  ASSERT_TRUE(catalogue().SetAnalysis(late.id, {.signature = SignatureOf(1),
                                                .title = "bank: SIGABRT",
                                                .backtraces = "{}",
                                                .program = "bank",
                                                .version = "bbbb"}));
  EXPECT_EQ(Shown(SignatureOf(1)).reopened_in(), "bbbb");
}

TEST_F(ServiceGroupsTest, AGroupIsNamedByItsFirstDigits) {
  const std::string one = "abcd" + std::string(60, '1');
  SendTo(one, "aaaa");
  SendTo("abcd" + std::string(60, '2'), "aaaa");
  EXPECT_EQ(Shown("abcd1").signature(), one);
  EXPECT_EQ(Shown(one).signature(), one);
  ChangeGroupRequest request = RequestFor(1);
  request.set_id("abcd");
  EXPECT_THAT(Refused(request).message, HasSubstr("give more digits"));
  request.set_id("ffff");
  EXPECT_THAT(Refused(request).message, HasSubstr("'clew group list'"));
  EXPECT_EQ(Refused(request).code, ErrorCode::kInvalidArgument);
  for (const char* id : {"", "fff", "FFFF", "%%%%", "0000'", "00\n0"}) {
    request.set_id(id);
    EXPECT_THAT(Refused(request).message, HasSubstr("is no group's id")) << id;
  }
  request.set_id(one + "0");
  EXPECT_EQ(Refused(request).code, ErrorCode::kInvalidArgument);
}

TEST_F(ServiceGroupsTest, WhatIsNoPlainLineIsRefusedWhole) {
  Send(1, "aaaa");
  ChangeGroupRequest longest = RequestFor(1);
  longest.set_version(std::string(kNameBytesMax, 'v'));
  longest.set_note(std::string(kNoteBytesMax - 2, 'n') + "\xc3\xa9");
  EXPECT_EQ(Change(longest).note(), longest.note());
  EXPECT_EQ(Change(longest).resolved_in(), longest.version());
  for (const std::string& text :
       {std::string(kNoteBytesMax + 1, 'n'), std::string("two\nlines"),
        std::string("\x1b[31mred"), std::string("\xff"), std::string(1, '\0'),
        std::string("\xc2\x9b"), std::string("\x7f"),
        std::string("cut \xc3")}) {
    ChangeGroupRequest request = RequestFor(1);
    request.set_note(text);
    EXPECT_EQ(Refused(request).code, ErrorCode::kInvalidArgument) << text;
    request.clear_note();
    request.set_version(text);
    EXPECT_EQ(Refused(request).code, ErrorCode::kInvalidArgument) << text;
  }
  EXPECT_EQ(Shown(SignatureOf(1)).note(), longest.note());
}

TEST_F(ServiceGroupsTest, ACallThatMakesNoSenseIsRefused) {
  Send(1, "aaaa");
  EXPECT_THAT(Refused(RequestFor(1, ChangeGroupRequest::CHANGE_NONE)).message,
              HasSubstr("changes nothing"));
  EXPECT_THAT(Refused(RequestFor(1, static_cast<ChangeGroupRequest::Change>(7)))
                  .message,
              HasSubstr("change is 7"));
  ChangeGroupRequest reopen = RequestFor(1, ChangeGroupRequest::CHANGE_REOPEN);
  reopen.set_version("aaaa");
  EXPECT_THAT(Refused(reopen).message, HasSubstr("a version is wanted"));
  pb::ListGroupsRequest many;
  many.set_limit(501);
  EXPECT_FALSE(service().ListGroups(kDesk, many).has_value());
}

TEST_F(ServiceGroupsTest, GroupsAreListedByPagesAndFilters) {
  for (uint64_t group = 1; group <= 3; ++group) {
    Send(group, "aaaa");
  }
  Send(1, "bbbb");
  EXPECT_TRUE(Resolve().resolved());
  pb::ListGroupsRequest request;
  request.set_limit(2);
  const auto first = service().ListGroups(kDesk, request);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->total(), 3u);
  ASSERT_EQ(first->groups_size(), 2);
  EXPECT_EQ(first->groups(0).signature(), SignatureOf(1));
  EXPECT_EQ(first->groups(0).bundles(), 2u);
  EXPECT_EQ(first->groups(0).first_version(), "aaaa");
  EXPECT_EQ(first->groups(0).last_version(), "bbbb");
  request.set_resolved(true);
  EXPECT_EQ(service().ListGroups(kDesk, request)->total(), 1u);
  request.set_resolved(false);
  EXPECT_EQ(service().ListGroups(kDesk, request)->total(), 2u);
  const auto total = [&](auto set) {
    pb::ListGroupsRequest filtered;
    set(filtered);
    const auto page = service().ListGroups(kDesk, filtered);
    EXPECT_TRUE(page.has_value()) << page.error().message;
    return page ? page->total() : 99;
  };
  EXPECT_EQ(total([](auto& r) { r.set_program("bank"); }), 3u);
  EXPECT_EQ(total([](auto& r) { r.set_program("other"); }), 0u);
  EXPECT_EQ(total([](auto& r) { r.set_version("bbb"); }), 1u);
  EXPECT_EQ(total([](auto& r) { r.set_failure("other"); }), 0u);
  EXPECT_EQ(total([](auto& r) { r.set_host("web-1"); }), 3u);
  EXPECT_EQ(total([](auto& r) { r.set_host("web-2"); }), 0u);
  EXPECT_EQ(total([](auto& r) { r.set_unit("other"); }), 0u);
  EXPECT_EQ(total([](auto& r) { r.set_state("witness"); }), 0u);
  EXPECT_EQ(total([](auto& r) { r.set_state("stored"); }), 3u);
  EXPECT_EQ(total([](auto& r) { r.set_reopened(true); }), 0u);
  EXPECT_EQ(total([](auto& r) { r.set_text("SIGABRT"); }), 3u);
  EXPECT_EQ(total([&](auto& r) { r.set_since_s(wall_s); }), 0u)
      << "the change was a second later";
  EXPECT_EQ(total([&](auto& r) { r.set_since_s(wall_s - 1); }), 1u);
  request.set_state("ill");
  EXPECT_FALSE(service().ListGroups(kDesk, request).has_value());
  pb::GetGroupRequest get;
  get.set_id(SignatureOf(1));
  const auto shown = service().GetGroup(kDesk, get);
  ASSERT_TRUE(shown.has_value());
  ASSERT_EQ(shown->versions_size(), 2);
  EXPECT_EQ(shown->versions(0).version(), "bbbb");
}

TEST_F(ServiceGroupsTest, HostsAreListedAsTheyReported) {
  pb::ReportRequest report;
  report.set_version("0.1.0");
  report.set_source("perf");
  report.set_stuck(2);
  report.set_last_error("disk");
  report.set_spool_bytes(7);
  ASSERT_TRUE(service().Report(kHost, report).has_value());
  ASSERT_TRUE(service().Report(kDesk, {}).has_value());
  const auto all = service().ListHosts(kDesk, {});
  ASSERT_TRUE(all.has_value()) << all.error().message;
  ASSERT_EQ(all->hosts_size(), 2);
  EXPECT_EQ(all->hosts(0).host(), "web1") << "in trouble, so it is first";
  EXPECT_EQ(all->hosts(0).health(), "trouble");
  EXPECT_EQ(all->hosts(0).seen_at_s(), wall_s);
  EXPECT_EQ(all->hosts(0).report().SerializeAsString(),
            report.SerializeAsString());
  pb::ListHostsRequest request;
  request.set_health("fine");
  EXPECT_EQ(service().ListHosts(kDesk, request)->hosts(0).host(), "desk");
  request.set_health("");
  request.set_text("WEB");
  EXPECT_EQ(service().ListHosts(kDesk, request)->total(), 1u);
  request.set_health("ill");
  EXPECT_THAT(service().ListHosts(kDesk, request).error().message,
              HasSubstr("wanted \"fine\""));
}

// Each costs a write to the catalogue, which all others wait for.
TEST_F(ServiceGroupsTest, AHostThatReportsWithoutEndIsSlowedDown) {
  uint64_t taken = 0;
  for (int i = 0; i < 1000; ++i) {
    const auto reply = service().Report(kHost, {});
    taken += reply ? 1 : 0;
    if (!reply) {
      EXPECT_EQ(reply.error().code, ErrorCode::kSystem) << "it tries again";
    }
  }
  EXPECT_EQ(taken, CallPace::kBurst);
  EXPECT_TRUE(service().Report(kDesk, {}).has_value());
  ++steady_s;
  EXPECT_TRUE(service().Report(kHost, {}).has_value());
}

}  // namespace
}  // namespace clew::collector
