//! A run as a document.

use crate::cli::Place;
use crate::cli::export::{hostile, ok};
use crate::cli::sample::{compacted, write};

#[test]
#[expect(clippy::too_many_lines, reason = "the document is shown whole")]
fn a_document_holds_what_was_said_and_nothing_else() {
    let place = Place::new();
    let path = write(&place, &hostile());
    let path = path.to_str().unwrap();
    let raw = ok(&place, &["export", path, "--format", "markdown"]);
    insta::assert_snapshot!(raw, @r#"
    # Run 7c31d0f2

    - Name: `` a `name` # no heading ``
    - Id: `0199d6a2-7b1c-7000-8000-00007c31d0f2`
    - Workspace: `/w </details>`
    - Written by: `undertext 0.1.0`
    - Model: `scripted`
    - 1 turn, 1 round, 10 entries; not ended

    <details>
    <summary>e2: settings and system text</summary>

    ```text
    You are a careful worker.
    ```

    </details>

    ## Turn 1

    ### Task (e3)

    ````text
    Read this:
    ```
    # no heading
    </details>
    ````

    <details>
    <summary>&lt;/summary&gt; .txt (text/plain)</summary>

    `````text
    ~~~
    ````js
    `````

    </details>

    ### Round (e4)

    About 0 tokens.

    <details>
    <summary>Reasoning</summary>

    ```text
    why
    ```

    </details>

    ```text
    <script>no()</script>
    ```

    <details>
    <summary>5.1 &lt;/summary&gt;&lt;b&gt;: ok</summary>

    ````json
    ```
    ````

    ``````text
    out
    `````
    # no heading
    ``````

    </details>

    <details>
    <summary>5.2 Read: ok</summary>

    ```json
    {"path":"a","n":1.0,"n":12345678901234567890}
    ```

    </details>

    <details>
    <summary>5.3 Read: ok</summary>

    ```json
    {"n":1e400}
    ```

    ```text
    too large
    ```

    </details>

    <details>
    <summary>5.4 Read: ok</summary>

    ```json
    [1]
    ```

    ```text
    no object
    ```

    </details>

    **e10** `` a `tick # no heading ``
    "#);

    write(&place, &compacted());
    let both = ok(
        &place,
        &["export", path, "--format", "markdown", "--view", "both"],
    );
    let told: Vec<&str> = both
        .lines()
        .filter(|line| {
            line.contains("reads as") || line.contains("is hidden") || line.contains(" e2")
        })
        .collect();
    insta::assert_snapshot!(told.join("\n"), @"
    <summary>Reasoning — reads in the summary e22</summary>
    This reads in the summary e22:
    <summary>5.1 Read: ok — reads in the summary e22</summary>
    <summary>5.2 Bash: ok — reads in the summary e22</summary>
    <summary>Reasoning — reads in the summary e22</summary>
    This reads in the summary e22:
    <summary>9.1 Read: ok — reads in the summary e22</summary>
    <summary>Reasoning — is hidden (e18)</summary>
    <summary>12.1 Read: ok — reads as a stub (e14) — its arguments: reads as a stub (e19)</summary>
    **auto e22, summary of e4–e10**
    ");
    let compacted = ok(
        &place,
        &[
            "export",
            path,
            "--format",
            "markdown",
            "--view",
            "compacted",
        ],
    );
    insta::assert_snapshot!(compacted, @r#"
    # Run 7c31d0f2

    - Id: `0199d6a2-7b1c-7000-8000-00007c31d0f2`
    - Workspace: `/w`
    - Written by: `undertext 0.1.0`
    - Model: `scripted`
    - 2 turns, 5 rounds, 26 entries; finished
    - As its model reads it at the end

    <details>
    <summary>System</summary>

    ```text
    You are a careful worker.
    ```

    </details>

    ## User

    ```text
    Mend it.
    ```

    ## User

    ```text
    [CONVERSATION HISTORY SUMMARY - 7 entries, rounds 1 to 2, overlay 22]
    The runtime made this summary in place of older entries; it is not from the user. Recall 22 shows what it covers.

    Two files were read.
    [END SUMMARY - Recent conversation continues below]
    ```

    ## Assistant

    ```text
    And on.
    ```

    Calls `12.1 Read`:

    ```json
    {}
    ```

    <details>
    <summary>Result of 12.1</summary>

    ```text
    [Previous: used Read] Recall 12.1 shows it (300 lines)
    ```

    </details>

    ## Assistant

    <details>
    <summary>Reasoning</summary>

    ```text
    why
    ```

    </details>

    ```text
    I look.
    ```

    Calls `16.1 Bash`:

    ```json
    {"command":"make"}
    ```

    <details>
    <summary>Result of 16.1</summary>

    ```text
    it fails
    ```

    </details>

    ## User

    ```text
    Go on.
    ```

    ## Assistant

    <details>
    <summary>Reasoning</summary>

    ```text
    why
    ```

    </details>

    ```text
    Done.
    ```

    The next request takes about 266 tokens.
    "#);
}
