// What the integration tests share: threads, bare repositories, a real HTTP server, a private sshd, remotes with faults.
#pragma once

#include "tests/unit/gitops/git_tool.hpp"

#include <kubeopera/gitops/committer.hpp>
#include <kubeopera/gitops/server.hpp>
#include <kubeopera/gitops/store.hpp>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace harness {

using namespace kubeopera;
using namespace kubeopera::gitops;
using namespace git_tool;

/// An io_context on some threads.
class io_threads {
 public:
  explicit io_threads(int n = 2);
  ~io_threads();
  asio::any_io_executor executor() { return io_.get_executor(); }
  /// Runs op to its end; the test fails when that takes more than two minutes.
  template <class T>
  result<T> run(task<T> op) {
    auto promise = std::make_shared<std::promise<result<T>>>();
    auto future = promise->get_future();
    spawn(executor(), deliver<T>(std::move(op), promise));
    if (future.wait_for(std::chrono::minutes(2)) != std::future_status::ready) {
      ADD_FAILURE() << "an operation did not end";
      std::abort();
    }
    return future.get();
  }

 private:
  template <class T>
  static asio::awaitable<void> deliver(task<T> op, std::shared_ptr<std::promise<result<T>>> promise) {
    promise->set_value(co_await std::move(op));
  }
  asio::io_context io_;
  asio::executor_work_guard<asio::io_context::executor_type> guard_;
  std::vector<std::thread> threads_;
};

/// A fresh bare repository with branch main unborn.
std::string make_bare(const temp_folder& dir, const std::string& name);
/// Writes a hook of a bare repository.
void write_hook(const std::string& repository, const std::string& name, const std::string& script);

/// A committer that runs until it is dropped.
class running {
 public:
  running(io_threads& io, std::shared_ptr<object_store> store, std::unique_ptr<remote> origin,
          committer_options options = committer_options(), metrics* m = nullptr);
  ~running();
  running(const running&) = delete;
  running& operator=(const running&) = delete;
  committer& operator*() { return *committer_; }
  committer* operator->() { return committer_.get(); }
  void stop();
  /// Submits from the test's thread and waits.
  result<receipt> submit(change c) { return io_.run<receipt>(committer_->submit(std::move(c))); }
  /// Submits all at once; the answers in order.
  std::vector<result<receipt>> submit_all(std::vector<change> all);
  /// The same without waiting.
  std::vector<std::future<result<receipt>>> start_all(std::vector<change> all);

 private:
  io_threads& io_;
  std::shared_ptr<committer> committer_;
  background body_;
};

change make_change(const std::string& app, const std::string& content, const std::string& vcluster = "team");

/// A Git server over real sockets.
class http_git {
 public:
  http_git(io_threads& io, git_server_options options);
  http_git(io_threads& io, http::handler handler);
  ~http_git();
  std::string url() const;
  int port() const;
  std::shared_ptr<http::transport> client();

 private:
  struct state;
  io_threads& io_;
  std::unique_ptr<state> state_;
};

/// A private sshd on a loopback port, with its own host key, for the current user. Null where sshd is not installed.
class ssh_server {
 public:
  static std::unique_ptr<ssh_server> start(const temp_folder& dir);
  ~ssh_server();
  ssh_options options(const std::string& repository) const;
  int port() const { return port_; }
  /// The same server behind a proxy on another port.
  ssh_options options_through(const std::string& repository, int port) const;

 private:
  std::string folder_, user_;
  int port_ = 0, pid_ = -1;
};

/// Hands everything on to another remote, through hooks that a test sets.
class faulty_remote : public remote {
 public:
  explicit faulty_remote(std::unique_ptr<remote> inner) : inner_(std::move(inner)) {}
  std::function<task<void>(int call)> before_tip, before_push;
  /// May replace the answer of a push that was made.
  std::function<task<void>(int call, result<void> answer)> after_push;
  std::atomic<int> tips{0}, fetches{0}, pushes{0};
  std::atomic<std::size_t> pushed_bytes{0};

  task<std::optional<std::string>> tip(const std::string& branch) override;
  task<void> fetch(const std::string& want, const std::vector<std::string>& have) override;
  task<void> push(const std::string& branch, const std::string& from, const std::string& to, const std::string& pack) override;
  bool shares_store() const override { return inner_->shares_store(); }

 private:
  std::unique_ptr<remote> inner_;
};

/// Returns once flag is set; gate is notified of that.
task<void> wait_until(std::shared_ptr<notifier> gate, std::shared_ptr<std::atomic<bool>> flag);
/// Returns once condition holds. Errors: deadline_exceeded after a minute.
task<void> until(std::function<bool()> condition);

inline task<void> nothing() { co_return result<void>(); }
inline task<void> answer_with(result<void> what) { co_return what; }

}  // namespace harness
