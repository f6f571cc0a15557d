#include "server/app/doctor.hpp"

#include "server/app/doctor_subject.hpp"

#include <boost/asio/io_context.hpp>

#include <cstdio>
#include <filesystem>

namespace kubeopera::inline v1::app {
namespace {

using examiner = task<void> (*)(std::shared_ptr<const doctor_subject>, examination&);

constexpr std::chrono::seconds area_limit{8};

struct area {
  const char* name;
  examiner look;
  const char* remedy;  // where it gives no answer in time
  examination out;
  bool ended = false;
};

std::vector<area> areas() {
  const char* network = "look whether it runs, and whether the network lets this machine reach it";
  return {{"server", examine_server, "look at its log; where it does not answer at all, stop it and start it again", {}, false},
          {"database",
           examine_database,
           "the database hangs: look at PostgreSQL's log, its disk and its load; restart it if it does not recover",
           {},
           false},
          {"broker", examine_broker, network, {}, false},
          {"host cluster", examine_cluster, network, {}, false},
          {"vclusters", examine_vclusters, network, {}, false},
          {"fleet repository", examine_fleet, network, {}, false},
          {"addresses", examine_addresses, network, {}, false}};
}

void no_answer(area& a, const std::string& how) { a.out.fail(a.name, "time limit", how, a.remedy); }

asio::awaitable<void> look_at(std::shared_ptr<const doctor_subject> s, area& a) {
  auto work = a.look(s, a.out);
  auto r = co_await with_deadline<void>(area_limit, std::move(work));
  a.ended = true;
  if (!r && r.error().code() == errc::deadline_exceeded)
    no_answer(a, "no answer within " + std::to_string(area_limit.count()) + " s");
  else if (!r)
    a.out.fail(a.name, "look", words_of(r.error()), a.remedy);
}

void append(std::vector<cli::finding>& to, std::vector<cli::finding>& from) {
  for (auto& f : from) to.push_back(std::move(f));
}

}  // namespace

int run_doctor(const doctor_options& options) {
  std::error_code ec;
  if (!options.data_dir.empty() && !std::filesystem::is_directory(options.data_dir, ec)) {
    std::fprintf(stderr, "kubeopera: there is no folder %s\n", options.data_dir.c_str());
    return 2;
  }
  // Before the context, whose destruction ends the looks that did not end by themselves.
  auto all = areas();
  examination first, last;
  boost::asio::io_context io;
  auto subject =
      std::make_shared<doctor_subject>(options.data_dir.empty() ? environment_subject(io.get_executor(), first)
                                                                : embedded_subject(io.get_executor(), options.data_dir, first));
  for (auto& a : all) spawn(io.get_executor(), look_at(subject, a));
  io.run_for(area_limit + std::chrono::seconds(2));
  examine_secrets(*subject, first);
  examine_machine(*subject, last);
  std::vector<cli::finding> findings;
  append(findings, first.findings);
  for (auto& a : all) {
    if (!a.ended) no_answer(a, "it hangs, and does not even let go when asked to");
    append(findings, a.out.findings);
  }
  append(findings, last.findings);
  cli::print_findings(findings, options.as_json);
  std::fflush(stdout);
  return cli::exit_code_of(findings);
}

}  // namespace kubeopera::inline v1::app
