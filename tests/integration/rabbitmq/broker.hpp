// A private RabbitMQ broker for tests: its own node, data, ports and port mapper.
#pragma once

#include <string>
#include <sys/types.h>

namespace kubeopera::rabbitmq_test {

class broker {
 public:
  /// Empty when a broker can be run here, else why not.
  static std::string missing();
  broker();
  ~broker();
  broker(const broker&) = delete;
  broker& operator=(const broker&) = delete;
  void start();
  /// Kills it; what it had confirmed is on disk.
  void stop();
  int port() const noexcept { return port_; }
  /// The end of its log.
  std::string log() const;

 private:
  std::string dir_;
  int port_, distribution_port_, mapper_port_;
  pid_t mapper_ = 0, server_ = 0;
};

}  // namespace kubeopera::rabbitmq_test
