ExUnit.start()

# The last line, for ./dev: ExUnit's own summary differs by release.
ExUnit.after_suite(fn %{total: total, failures: failed, skipped: skipped, excluded: excluded} ->
  left_out = skipped + excluded
  IO.puts("\n#{total - failed - left_out} passed, #{failed} failed, #{left_out} skipped")
end)
