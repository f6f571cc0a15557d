// pkt-lines, advertisements, push reports and fetch answers, fed byte by byte.
#include "src/gitops/exchange.hpp"

#include <gtest/gtest.h>

using namespace kubeopera;
using namespace kubeopera::gitops;
using namespace kubeopera::gitops::detail;

namespace {

const std::string id_a(40, 'a'), id_b(40, 'b');

std::string lines(std::initializer_list<std::string> all, bool flush = true) {
  std::string out;
  for (const auto& l : all) append_pkt(out, l);
  if (flush) append_flush(out);
  return out;
}

template <class Reader>
result<bool> feed(Reader& reader, std::string_view bytes) {
  pkt_reader split;
  for (char c : bytes) {
    split.feed({&c, 1});
    auto p = split.next();
    if (!p) return p.error();
    if (!*p) continue;
    auto done = reader.take(**p);
    if (!done || *done) return done;
  }
  return false;
}

result<void> report(const std::string& inner, bool side_band, const std::string& stderr_text = "") {
  push_report r(side_band);
  std::string wire;
  if (!side_band) {
    wire = inner;
  } else {
    if (!stderr_text.empty()) append_pkt(wire, "\2" + stderr_text);
    for (std::size_t i = 0; i < inner.size(); i += 7) append_pkt(wire, "\1" + inner.substr(i, 7));
    append_flush(wire);
  }
  auto done = feed(r, wire);
  if (!done) return done.error();
  EXPECT_TRUE(*done);
  return r.verdict("refs/heads/main");
}

class memory_writer : public pack_writer {
 public:
  explicit memory_writer(std::string& out, bool& committed) : out_(out), committed_(committed) {}
  result<void> append(std::string_view bytes) override {
    out_.append(bytes);
    return {};
  }
  result<void> commit() override {
    committed_ = true;
    return {};
  }

 private:
  std::string& out_;
  bool& committed_;
};

}  // namespace

TEST(pkt_line, special_lines_and_faults) {
  pkt_reader r;
  r.feed("0000000100020009hi\n!x");
  EXPECT_EQ((*r.next())->what, pkt::kind::flush);
  EXPECT_EQ((*r.next())->what, pkt::kind::delimiter);
  EXPECT_EQ((*r.next())->what, pkt::kind::response_end);
  EXPECT_EQ((*r.next())->payload, "hi\n!x");
  EXPECT_FALSE(*r.next());
  EXPECT_TRUE(r.empty());
  for (std::string bad : {"0003", "zzzz", "fff5", "-001"}) {
    pkt_reader b;
    b.feed(bad);
    EXPECT_FALSE(b.next()) << bad;
  }
}

TEST(advertisement, over_http) {
  advertisement_reader r("git-upload-pack");
  std::string wire = lines({"# service=git-upload-pack\n"});
  wire += lines({id_a + " HEAD" + std::string(1, '\0') + "side-band-64k ofs-delta agent=git/2.39 symref=HEAD:refs/heads/main\n",
                 id_a + " refs/heads/main\n", id_b + " refs/tags/v1\n", id_a + " refs/tags/v1^{}\n"});
  auto done = feed(r, wire);
  ASSERT_TRUE(done) << to_string(done.error());
  EXPECT_TRUE(*done);
  EXPECT_EQ(tip_in(r.value(), "main"), id_a);
  EXPECT_EQ(tip_in(r.value(), "other"), std::nullopt);
  EXPECT_TRUE(r.value().has("ofs-delta"));
  EXPECT_EQ(r.value().capabilities.at("agent"), "git/2.39");
}

TEST(advertisement, of_an_empty_repository_and_version_1) {
  advertisement_reader r("");
  auto done = feed(r, lines({"version 1", std::string(40, '0') + " capabilities^{}" + std::string(1, '\0') + "report-status"}));
  ASSERT_TRUE(done && *done);
  EXPECT_TRUE(r.value().refs.empty());
  EXPECT_TRUE(r.value().has("report-status"));
}

TEST(advertisement, faults) {
  auto code = [](const std::string& service, const std::string& wire) {
    advertisement_reader r(service);
    auto done = feed(r, wire);
    return done ? std::string(*done ? "done" : "more") : std::string(to_string(done.error().code()));
  };
  EXPECT_EQ(code("git-upload-pack", lines({"# service=git-receive-pack\n"})), "unavailable");
  EXPECT_EQ(code("", lines({"ERR access denied\n"})), "permission_denied");
  EXPECT_EQ(code("", lines({"version 2"})), "unsupported");
  EXPECT_EQ(code("", lines({id_a + " refs/heads/main"})), "unavailable");
  EXPECT_EQ(code("", lines({"not an id refs/heads/main" + std::string(1, '\0') + "caps"})), "unavailable");
}

TEST(push_report, accepted_with_and_without_side_band) {
  auto good = lines({"unpack ok\n", "ok refs/heads/main\n"});
  EXPECT_TRUE(report(good, false));
  EXPECT_TRUE(report(good, true, "remote: thanks\n"));
}

TEST(push_report, refusals_by_their_words) {
  struct row {
    std::string reason, told;
    errc code;
  };
  const row rows[] = {
      {"pre-receive hook declined", "no deploys on Friday\n", errc::permission_denied},
      {"hook declined", "", errc::permission_denied},
      {"hook declined", "somebody wrote: cannot lock ref\n", errc::permission_denied},
      {"deny updating a hidden ref", "", errc::permission_denied},
      {"failed to update ref", "error: cannot lock ref 'refs/heads/main': is at 1 but expected 2\n", errc::conflict},
      {"non-fast-forward", "", errc::conflict},
      {"fetch first", "", errc::conflict},
      {"reference already exists", "", errc::conflict},
  };
  for (const auto& r : rows) {
    auto got = report(lines({"unpack ok\n", "ng refs/heads/main " + r.reason + "\n"}), true, r.told);
    ASSERT_FALSE(got) << r.reason;
    EXPECT_EQ(got.error().code(), r.code) << r.reason;
    EXPECT_NE(got.error().message().find(r.reason), std::string::npos);
  }
  auto told = report(lines({"unpack ok\n", "ng refs/heads/main hook declined\n"}), true, "\x1b[31mask https://u:pw@host/x\n");
  EXPECT_EQ(told.error().message().find("pw"), std::string::npos);
  EXPECT_EQ(told.error().message().find('\x1b'), std::string::npos);
}

TEST(push_report, silence_and_unpack_faults_are_no_success) {
  EXPECT_EQ(report(lines({"unpack ok\n"}), false).error().code(), errc::unavailable);
  EXPECT_EQ(report(lines({"unpack ok\n", "ok refs/heads/other\n"}), false).error().code(), errc::unavailable);
  EXPECT_EQ(report(lines({"unpack index-pack failed\n", "ng refs/heads/main unpacker error\n"}), true).error().code(),
            errc::unavailable);
  EXPECT_EQ(report(lines({"ok refs/heads/main\n"}), false).error().code(), errc::unavailable);
}

TEST(exchange, requests_ask_only_for_what_is_offered) {
  advertisement plain;
  EXPECT_EQ(fetch_request(plain, id_a, {}), "0032want " + id_a + "\n00000009done\n");
  advertisement rich;
  for (auto c : {"side-band-64k", "thin-pack", "ofs-delta", "agent", "report-status"}) rich.capabilities[c] = "";
  auto asked = fetch_request(rich, id_a, {id_b});
  EXPECT_NE(asked.find("side-band-64k ofs-delta thin-pack agent=kubeopera"), std::string::npos);
  EXPECT_NE(asked.find("0032have " + id_b + "\n0009done\n"), std::string::npos);
  auto pushed = push_request(plain, "refs/heads/main", "", id_a);
  EXPECT_EQ(pushed.substr(4),
            std::string(40, '0') + " " + id_a + " refs/heads/main" + std::string(1, '\0') + " report-status0000");
}

TEST(exchange, fetch_answers) {
  struct row {
    bool side_band;
    std::string wire, pack;
    bool good;
  };
  auto bands = lines({"NAK\n", "\2counting\n", "\1PACK", "\1rest"});
  const row rows[] = {
      {true, bands, "PACKrest", true},
      {true, lines({"ACK " + id_a + "\n", "\1PACK"}), "PACK", true},
      {true, bands.substr(0, bands.size() - 4), "PACKrest", false},  // no flush: cut off
      {true, lines({"NAK\n", "\3no space left\n"}), "", false},
      {true, lines({"ERR upload-pack: not our ref\n"}), "", false},
      {true, lines({"NAK\n"}), "", false},
      {false, lines({"NAK\n"}, false) + "PACKraw", "PACKraw", true},
  };
  for (const auto& r : rows) {
    for (std::size_t step : {std::size_t(1), std::size_t(1000)}) {
      std::string pack;
      bool committed = false;
      fetch_answer answer(r.side_band, std::make_unique<memory_writer>(pack, committed));
      result<void> ok;
      for (std::size_t i = 0; i < r.wire.size() && ok; i += step) ok = answer.take(std::string_view(r.wire).substr(i, step));
      if (ok) ok = answer.finish();
      EXPECT_EQ(ok.has_value(), r.good) << r.wire;
      EXPECT_EQ(committed, r.good);
      if (r.good) {
        EXPECT_EQ(pack, r.pack);
      }
    }
  }
}
