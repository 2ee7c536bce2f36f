#include "server/config/server_config.hpp"
#include "unit/server/server_fixture.hpp"

#include <array>
#include <cstdio>
#include <fcntl.h>
#include <fstream>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

using namespace coaccel;

namespace {

/// The program coaccel-serve as a child, with its standard output in a pipe.
class served_process {
public:
    explicit served_process(std::vector<std::string> words)
    {
        words.insert(words.begin(), COACCEL_TEST_SERVE_PROGRAM);
        std::vector<char*> arguments;
        for (auto& w : words)
            arguments.push_back(w.data());
        arguments.push_back(nullptr);
        int ends[2];
        REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
        posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
        REQUIRE(::posix_spawn(&process_, arguments[0], &actions, nullptr, arguments.data(), environ) == 0);
        posix_spawn_file_actions_destroy(&actions);
        ::close(ends[1]);
        output_ = ends[0];
    }
    served_process(const served_process&) = delete;
    served_process& operator=(const served_process&) = delete;
    ~served_process()
    {
        if (process_ > 0) {
            ::kill(process_, SIGKILL);
            wait();
        }
        ::close(output_);
    }

    /// Reads until the text has come, the program has ended, or it has said nothing for a minute.
    bool says(const std::string& text)
    {
        while (said_.find(text) == said_.npos) {
            pollfd output{output_, POLLIN, 0};
            if (::poll(&output, 1, 60'000) <= 0)
                return false;
            std::array<char, 1024> piece;
            const auto n = ::read(output_, piece.data(), piece.size());
            if (n <= 0)
                return false;
            said_.append(piece.data(), static_cast<std::size_t>(n));
        }
        return true;
    }

    std::uint16_t port()
    {
        REQUIRE_MESSAGE(says("/\n"), said_);
        REQUIRE_MESSAGE(says("listening on http://127.0.0.1:"), said_);
        const auto at = said_.find("listening on http://127.0.0.1:") + 30;
        return static_cast<std::uint16_t>(std::stoi(said_.substr(at)));
    }

    void signal(int number) { ::kill(process_, number); }

    int wait()
    {
        int status = 0;
        ::waitpid(std::exchange(process_, 0), &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
    }

    const std::string& said() const { return said_; }

private:
    pid_t process_ = 0;
    int output_ = -1;
    std::string said_;
};

} // namespace

TEST_SUITE_BEGIN("server.program");

TEST_CASE("coaccel-serve serves, and ends with status 0 on SIGTERM")
{
    test::temporary_folder folder;
    test::save_model(folder.path(), "scale", 1, test::scale_set(2));
    served_process p({"--listen", "127.0.0.1:0", "--model-folder", folder.path(), "--device", "cpu", "--log", "info"});
    const auto port = p.port();
    asio::io_context io;
    const auto a =
        test::co_run(io, test::ask(port, test::post("/v2/models/scale/infer", test::json_request("1,2,3,4"))));
    CHECK_MESSAGE(test::contains(a.body, "[2,4,6,8]"), a.body);
    p.signal(SIGTERM);
    CHECK(p.says("stopping"));
    CHECK(p.wait() == 0);
}

TEST_CASE("coaccel-serve warns of options for a model that it does not have")
{
    test::temporary_folder folder;
    test::save_model(folder.path(), "scale", 1, test::scale_set(2));
    const std::string file = folder / "serve.conf";
    std::ofstream(file) << "[server]\nlisten = 127.0.0.1:0\ndevice = cpu\nmodel_folder = " << folder.path()
                        << "\n[model scal]\nmax_batch = 4\n";
    const std::string warning = "[model scal]: " + folder.path() + " has no model \"scal\"; did you mean scale?";
    served_process checked({"--check-config", "--config", file});
    CHECK(checked.says(warning));
    CHECK(checked.wait() == 0);
    served_process serving({"--config", file, "--log", "warning"});
    CHECK(serving.says(warning));
    (void)serving.port();
}

TEST_CASE("coaccel-serve says what is wrong, and ends")
{
    served_process wrong({"--no-such-key", "1"});
    CHECK(wrong.says("--no-such-key"));
    CHECK(wrong.wait() == 2);
    const test::temporary_folder models;
    served_process checked({"--check-config", "--listen", "127.0.0.1:0", "--model-folder", models.path()});
    CHECK(checked.says("[server]"));
    CHECK(checked.says("device = best,worker,standby=1"));
    CHECK(checked.wait() == 0);
    served_process misspelt({"--check-config", "--model-folder", models / "none", "--page-folder", models / "pages"});
    CHECK(misspelt.says("model_folder: there is no folder " + (models / "none")));
    CHECK(misspelt.says("page_folder: there is no folder"));
    CHECK(misspelt.wait() == 2);
    test::server_fixture f;
    f.start();
    served_process taken({"--listen", "127.0.0.1:" + std::to_string(f.serving->port()), "--model-folder",
                          f.folder.path(), "--device", "cpu"});
    CHECK(taken.says("cannot listen on address 127.0.0.1"));
    CHECK(taken.wait() == 1);
}

TEST_CASE("docs/server.md has the reference of all keys")
{
    std::ifstream file(COACCEL_TEST_SERVER_PAGE);
    const std::string page((std::istreambuf_iterator<char>(file)), {});
    auto reference = coaccel::server::config_reference();
    while (reference.ends_with('\n'))
        reference.pop_back();
    CHECK_MESSAGE(page.find(reference) != page.npos, reference);
}

TEST_SUITE_END();
