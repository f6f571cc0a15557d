// Runs a fuzz target without libFuzzer: every file of the corpus, then mutations of them from a fixed seed.
// Usage: <program> <corpus folder> [mutations]; a long run makes fifty times as many.
#include "tests/support/figures.hpp"

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

class generator {
 public:
  std::uint64_t operator()() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    return state_ ^= state_ << 17;
  }
  std::uint64_t below(std::uint64_t n) { return (*this)() % n; }

 private:
  std::uint64_t state_ = 88172645463325252;
};

void mutate(std::string& text, generator& random, const std::vector<std::string>& seeds) {
  for (auto n = 1 + random.below(4); n > 0; --n) {
    auto at = text.empty() ? 0 : random.below(text.size());
    switch (random.below(5)) {
      case 0:
        text.erase(at, 1 + random.below(8));
        break;
      case 1:
        text.insert(at, 1, static_cast<char>(random()));
        break;
      case 2:
        text.insert(at, text.substr(random.below(text.size() + 1), random.below(16)));
        break;
      case 3: {
        const auto& other = seeds[random.below(seeds.size())];
        text.replace(at, random.below(16), other.substr(random.below(other.size() + 1), random.below(32)));
        break;
      }
      default:
        if (!text.empty()) text[at] = static_cast<char>(random());
    }
  }
}

// The input at work, shown where it ends the process; only what a signal handler may call.
const std::string* current = nullptr;
void show_input(int signal) {
  std::string_view digits = "0123456789abcdef";
  for (std::size_t i = 0; current && i < current->size(); ++i) {
    auto c = static_cast<unsigned char>((*current)[i]);
    char text[4] = {'\\', 'x', digits[c >> 4], digits[c & 15]};
    bool plain = c >= 0x20 && c < 0x7f && c != '\\';
    if (::write(2, plain ? reinterpret_cast<char*>(&c) : text, plain ? 1 : 4) < 0) break;
  }
  if (::write(2, "\n", 1) == 1) std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void run(const std::string& input) {
  current = &input;
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<std::string> seeds;
  for (const auto& file : files) {
    std::ifstream in(file, std::ios::binary);
    seeds.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    run(seeds.back());
  }
  if (seeds.empty()) {
    std::cerr << "no corpus in " << argv[1] << "\n";
    return 1;
  }
  std::signal(SIGABRT, show_input);
  std::signal(SIGSEGV, show_input);
  generator random;
  long count = argc > 2 ? std::atol(argv[2]) : 20'000;
  if (kubeopera::tests::long_run()) count *= 50;
  for (long i = 0; i < count; ++i) {
    auto input = seeds[random.below(seeds.size())];
    mutate(input, random, seeds);
    run(input);
  }
  kubeopera::tests::report(std::filesystem::path(argv[0]).filename().string(),
                           std::to_string(seeds.size()) + " seeds and " + std::to_string(count) + " mutations");
}
