// One private PostgreSQL for the test program, and ways to run coroutines from a test's thread.
#pragma once

#include "server/embedded/postgres_process.hpp"

#include <kubeopera/core/id.hpp>
#include <kubeopera/postgres/pool.hpp>

#include <boost/asio/thread_pool.hpp>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>

namespace kubeopera::pg_test {

using namespace std::chrono_literals;

asio::thread_pool& threads();

namespace detail {
template <class T>
asio::awaitable<void> deliver(task<T> op, std::shared_ptr<std::promise<result<T>>> out) {
  auto r = co_await std::move(op);
  out->set_value(std::move(r));
}
}  // namespace detail

/// Starts op; the future holds its result.
template <class T>
std::future<result<T>> start(task<T> op) {
  auto out = std::make_shared<std::promise<result<T>>>();
  auto f = out->get_future();
  spawn(threads().get_executor(), detail::deliver<T>(std::move(op), out));
  return f;
}

/// op's result; a test failure and `internal` when it takes longer than a minute.
template <class T>
result<T> wait(task<T> op) {
  auto f = start<T>(std::move(op));
  if (f.wait_for(60s) == std::future_status::ready) return f.get();
  ADD_FAILURE() << "no result within a minute";
  return error(errc::internal, "TestTimeout", "no result within a minute");
}

/// Polls check every few milliseconds until it holds or 30 s are over.
template <class Check>
bool eventually(Check check) {
  auto limit = std::chrono::steady_clock::now() + 30s;
  while (!check()) {
    if (std::chrono::steady_clock::now() > limit) return false;
    auto pause = wait(sleep_for(5ms));
    if (!pause) return false;
  }
  return true;
}

/// The program's server, started on first use.
embedded::postgres_process& server();
/// A directory for a server of its own; removed at the end of the program.
std::string fresh_directory();
result<std::unique_ptr<embedded::postgres_process>> start_server(const std::string& dir);

/// A pool on a schema of its own.
struct fixture {
  explicit fixture(int size = 4);
  std::string schema;
  metrics all;
  postgres::pool_options options;
  std::shared_ptr<postgres::pool> db;

  result<postgres::rows> sql(const std::string& text, postgres::params args = {});
  /// The first row's column v as an integer; fails the test where there is none.
  std::int64_t number(const std::string& text, postgres::params args = {});
};

}  // namespace kubeopera::pg_test
