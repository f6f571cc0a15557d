// Runs the git program in tests, away from the machine's configuration, and makes folders that go away.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/wait.h>

namespace git_tool {

class temp_folder {
 public:
  temp_folder() {
    auto pattern = (std::filesystem::temp_directory_path() / "kubeopera-git-XXXXXX").string();
    if (!::mkdtemp(pattern.data())) throw std::runtime_error("mkdtemp");
    path_ = pattern;
  }
  ~temp_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  temp_folder(const temp_folder&) = delete;
  temp_folder& operator=(const temp_folder&) = delete;
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::string str() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

struct outcome {
  int code = -1;
  std::string text;  ///< standard output and error
};

inline outcome shell(const std::string& command) {
  const char* quiet =
      "export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null HOME=/nonexistent LC_ALL=C GIT_AUTHOR_NAME=t "
      "GIT_AUTHOR_EMAIL=t@t "
      "GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t@t; ";
  outcome out;
  FILE* pipe = ::popen((quiet + ("{ " + command + "\n} 2>&1")).c_str(), "r");
  if (!pipe) return out;
  char buffer[4096];
  while (auto n = std::fread(buffer, 1, sizeof buffer, pipe)) out.text.append(buffer, n);
  int status = ::pclose(pipe);
  out.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  return out;
}

/// Output of "git -C <directory> <arguments>" without the newline at its end; the test fails when git does.
inline std::string git(const std::string& directory, const std::string& arguments) {
  auto got = shell("git -C '" + directory + "' " + arguments);
  EXPECT_EQ(got.code, 0) << "git " << arguments << "\n" << got.text;
  while (got.text.ends_with('\n')) got.text.pop_back();
  return got.text;
}

/// What "git fsck --strict" complains about: "" for a sound repository.
inline std::string fsck(const std::string& directory) {
  auto got = shell("git -C '" + directory + "' fsck --strict --full --no-dangling --no-progress 2>&1 | grep -v '^notice: '");
  return got.text;
}

inline void write_file(const std::string& path, const std::string& bytes) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

inline std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace git_tool
