//! Players that are small scripts.

use tempfile::TempDir;
use tokio::time::Instant;

use super::*;

/// A player that is this script, with the folder as its first argument.
fn player(script: &str) -> (PlayerProgram, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let words = [
        "sh",
        "-c",
        script,
        "player",
        &folder.path().display().to_string(),
    ];
    (
        PlayerProgram::new(words.map(str::to_owned).to_vec()),
        folder,
    )
}

fn silence(milliseconds: usize) -> Bytes {
    vec![0; milliseconds * 32].into()
}

#[test]
fn known_programs_get_their_own_options() {
    let format = AudioFormat {
        rate: 22_050,
        width: 2,
        channels: 2,
    };
    for (program, expected, with_header) in [
        ("pw-play", "pw-play -", true),
        (
            "paplay",
            "paplay --raw --latency-msec=150 --format=s16le --rate=22050 --channels=2",
            false,
        ),
        ("aplay", "aplay -q -t raw -f S16_LE -r 22050 -c 2 -", false),
        ("my-player", "my-player", true),
    ] {
        let (words, header) = PlayerProgram::new(vec![program.to_owned()]).command(format);
        assert_eq!((words.join(" ").as_str(), header), (expected, with_header));
    }
}

#[tokio::test]
async fn command_reads_a_wav_stream_and_playback_ends_when_it_exits() {
    let (program, folder) = player("cat > $1/heard; sleep 0.2; echo done > $1/done");
    let mut playing = program.begin(AudioFormat::CAPTURE).await.unwrap();
    let sound: Bytes = (0..3200_u16).flat_map(u16::to_le_bytes).collect();
    playing.play(sound.slice(..3200)).await.unwrap();
    playing.play(sound.slice(3200..)).await.unwrap();
    playing.end().await.unwrap();
    assert!(folder.path().join("done").exists());
    let mut wav = crate::audio::WavStream::default();
    let heard = wav
        .feed(&std::fs::read(folder.path().join("heard")).unwrap())
        .unwrap();
    assert_eq!((wav.format(), heard), (Some(AudioFormat::CAPTURE), sound));
}

#[tokio::test]
async fn sound_is_sent_in_small_pieces() {
    let (program, _folder) = player("cat > /dev/null");
    let mut playing = program.begin(AudioFormat::CAPTURE).await.unwrap();
    let began = Instant::now();
    for _ in 0..20 {
        playing.play(silence(40)).await.unwrap();
    }
    let (given, took) = (800, began.elapsed().as_millis());
    assert!(
        took + 340 >= given,
        "{given} ms were given within {took} ms"
    );
    assert!(playing.heard().as_millis() <= took + 1);
    playing.end().await.unwrap();
}

#[tokio::test]
async fn stop_kills_the_player_and_its_children() {
    let (program, folder) = player("sleep 1000 & echo $! > $1/pid; cat > /dev/null");
    let mut playing = program.begin(AudioFormat::CAPTURE).await.unwrap();
    let pid = folder.path().join("pid");
    let lives = || {
        let pid = std::fs::read_to_string(&pid).unwrap_or_default();
        let stat =
            std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        stat.rsplit_once(") ")
            .is_some_and(|(_, rest)| !rest.starts_with('Z'))
    };
    let until = async |wanted: bool| {
        while lives() != wanted {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    playing.play(silence(40)).await.unwrap();
    timeout(Duration::from_secs(10), until(true))
        .await
        .expect("it starts");
    let stopped = Instant::now();
    playing.stop().await;
    timeout(Duration::from_millis(1500), until(false))
        .await
        .expect("it is silent within 150 ms");
    assert!(stopped.elapsed() < Duration::from_millis(1500));
    assert!(playing.play(silence(40)).await.is_err());
}

#[tokio::test]
async fn failing_player_reports_why() {
    for (script, expected) in [
        (
            "echo no such device >&2; exit 1",
            "sh: ended (exit status: 1): no such device",
        ),
        (
            "head -c 100 > /dev/null; kill -9 $$",
            "sh: ended (signal: 9 (SIGKILL))",
        ),
        ("exit 0", "sh: ended before the sound did"),
    ] {
        let (program, _folder) = player(script);
        let mut heard = Duration::ZERO;
        let play = async {
            // A fast program already fails here.
            let mut playing = program.begin(AudioFormat::CAPTURE).await?;
            let result = async {
                for _ in 0..50 {
                    playing.play(silence(40)).await?;
                }
                playing.end().await
            };
            let result = result.await;
            heard = playing.heard();
            result
        };
        assert_eq!(play.await.unwrap_err().to_string(), expected, "{script}");
        assert!(heard < Duration::from_secs(1), "{script}");
    }
    let absent = PlayerProgram::new(vec!["/no/such/player".to_owned()]);
    assert!(absent.begin(AudioFormat::CAPTURE).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn player_that_does_not_read_or_exit_times_out() {
    let (program, _folder) = player("sleep 1000");
    let mut playing = program.begin(AudioFormat::CAPTURE).await.unwrap();
    let error = playing.end().await.unwrap_err();
    assert_eq!(error.to_string(), "sh did not answer within 5 s");
    let mut playing = program.begin(AudioFormat::CAPTURE).await.unwrap();
    let error = loop {
        if let Err(error) = playing.play(silence(40)).await {
            break error;
        }
    };
    assert_eq!(error.to_string(), "sh did not answer within 5 s");
}

#[tokio::test]
async fn output_of_the_player_does_not_block_it() {
    let (program, _folder) =
        player("yes | head -c 1000000; cat > /dev/null; yes | head -c 1000000 >&2");
    let mut playing = program.begin(AudioFormat::CAPTURE).await.unwrap();
    playing.play(silence(40)).await.unwrap();
    timeout(Duration::from_secs(50), playing.end())
        .await
        .expect("it ends")
        .unwrap();
}
