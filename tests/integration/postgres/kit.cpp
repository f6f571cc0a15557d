// The server of the test program.
#include "tests/integration/postgres/kit.hpp"

#include <filesystem>
#include <sys/stat.h>
#include <vector>

namespace kubeopera::pg_test {
namespace {

struct world {
  asio::thread_pool threads{3};
  std::vector<std::string> directories;
  std::unique_ptr<embedded::postgres_process> server;
};

world* the_world = nullptr;

class environment final : public testing::Environment {
 public:
  void SetUp() override { the_world = new world; }
  void TearDown() override {
    the_world->server.reset();
    the_world->threads.join();
    for (const auto& d : the_world->directories) std::filesystem::remove_all(d);
    delete the_world;
  }
};

const auto* registered = testing::AddGlobalTestEnvironment(new environment);

}  // namespace

asio::thread_pool& threads() { return the_world->threads; }

std::string fresh_directory() {
  std::string name = "/tmp/kubeopera-test-XXXXXX";
  if (!::mkdtemp(name.data())) throw std::runtime_error("no temporary directory");
  ::chmod(name.c_str(), 0755);  // the server's user must get through
  the_world->directories.push_back(name);
  return name;
}

result<std::unique_ptr<embedded::postgres_process>> start_server(const std::string& dir) {
  embedded::postgres_options o;
  o.directory = dir + "/pg";
  return embedded::postgres_process::start(o);
}

embedded::postgres_process& server() {
  if (!the_world->server) {
    auto s = start_server(fresh_directory());
    if (!s) throw std::runtime_error(to_string(s.error()));
    the_world->server = std::move(*s);
  }
  return *the_world->server;
}

fixture::fixture(int size) : schema("t_" + make_uuid_v7()) {
  options.url = server().url();
  options.schema = schema;
  options.size = size;
  db = postgres::make_pool(threads().get_executor(), options, logger::none(), &all);
  auto made = wait(postgres::migrate(*db, schema, {}));
  if (!made) throw std::runtime_error(to_string(made.error()));
}

result<postgres::rows> fixture::sql(const std::string& text, postgres::params args) {
  postgres::statement st(text, std::move(args));
  return wait(db->query(st));
}

std::int64_t fixture::number(const std::string& text, postgres::params args) {
  auto r = sql(text, std::move(args));
  if (!r || r->empty()) {
    ADD_FAILURE() << text << ": " << (r ? "no row" : to_string(r.error()));
    return -1;
  }
  return r->integer(0, "v");
}

}  // namespace kubeopera::pg_test
