#!/usr/bin/env python3
"""Outbox rows across processes: a server says that it has written some, and hears when another process has."""
import subprocess
import uuid

import harness


class Notify(harness.Case):
    def psql(self, *commands):
        flags = [flag for c in commands for flag in ("-c", c)]
        run = subprocess.run(["psql", "-X", "-A", "-t", "-q", "-h", f"{self.server.dir}/d/postgres/run", "-U", "kubeopera", "-d", "postgres", *flags],
                             capture_output=True, text=True, timeout=60)
        self.assertEqual(run.returncode, 0, run.stderr)
        return run.stdout.strip()

    def test_a_server_tells_others_after_the_commit(self):
        listener = subprocess.Popen(["psql", "-X", "-A", "-t", "-q", "-h", f"{self.server.dir}/d/postgres/run", "-U", "kubeopera", "-d", "postgres"],
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            listener.stdin.write("listen kubeopera_outbox;\nselect 'listening';\n")
            listener.stdin.flush()
            self.assertEqual(listener.stdout.readline().strip(), "listening")
            self.server.cloudspace("told")
            out, _ = listener.communicate("select 'end';\n", timeout=60)  # psql prints what has come with the next answer
            self.assertIn('Asynchronous notification "kubeopera_outbox"', out)
        finally:
            listener.kill()

    def test_a_row_of_another_process_is_delivered_when_it_says_so(self):
        one = "select count(*) from pg_stat_activity where application_name = 'kubeopera listener'"
        self.server.until(lambda: self.psql(one), lambda n: n == "1")  # one connection a process
        space = self.server.cloudspace("heard")
        waits = []
        for _ in range(20):
            row = uuid.uuid4()
            self.psql(f"insert into kubeopera.outbox (id, aggregate, topic, payload) values ('{row}', '{space['default_vcluster']}', 'tenant', '{{}}')",
                      "select pg_notify('kubeopera_outbox', 'another process')")
            done = f"select extract(epoch from done_at - created_at) from kubeopera.outbox where id = '{row}' and done_at is not null"
            waits.append(float(self.server.until(lambda: self.psql(done), bool)))
        waits.sort()
        # A relay that only looked every two seconds would need about forty for these.
        self.assertLess(sum(waits), 20)
        harness.report("e2e_notify", f"20 rows of another process delivered after {waits[10] * 1000:.0f} ms (median), {waits[-1] * 1000:.0f} ms at most")


if __name__ == "__main__":
    harness.main()
